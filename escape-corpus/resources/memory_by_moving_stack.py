# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use memory that does not count, since it was cut out of the stack"
# evidence = { bound = "memory" }
# needs = ["linux"]
# stopped-everywhere = "this limit holds in every mode (contract B6)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import ctypes
import time

libc = ctypes.CDLL(None, use_errno=True)
libc.getauxval.restype = ctypes.c_ulong
libc.mremap.restype = ctypes.c_void_p
AT_RANDOM, MAYMOVE = 25, 1
PIECE = 16 << 20
page = libc.getauxval(AT_RANDOM) & ~4095
place = libc.mremap(ctypes.c_void_p(page), ctypes.c_size_t(4096), ctypes.c_size_t(40 * PIECE), MAYMOVE)
if place == ctypes.c_void_p(-1).value:
    raise OSError(ctypes.get_errno(), "mremap")
for number in range(40):
    ctypes.memset(place + number * PIECE, 1, PIECE)
    # Where the server looks from outside it looks every 100 ms, and what a program holds between
    # two looks is not promised.
    time.sleep(0.4)
