# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use memory that does not count, since the stack was cut into many that each grow"
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
AT_RANDOM, DONTDUMP = 25, 16
STEP = 7 << 20
# The first cut is made far below what is in use, where writing lets the stack grow first.
lowest = (libc.getauxval(AT_RANDOM) & ~4095) - STEP
ctypes.memset(lowest, 1, 4096)
for number in range(100):
    if libc.madvise(ctypes.c_void_p(lowest), ctypes.c_size_t(4096), DONTDUMP):
        raise OSError(ctypes.get_errno(), "madvise")
    below = lowest - STEP
    for page in range(lowest - 4096, below - 1, -4096):
        ctypes.memset(page, 1, 1)
    lowest = below
    # Where the server looks from outside it looks every 100 ms, and what a program holds between
    # two looks is not promised.
    time.sleep(0.08)
