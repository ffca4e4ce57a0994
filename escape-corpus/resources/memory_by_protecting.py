# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use memory that does not count any more, since it can no longer be written"
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
import mmap
import time

libc = ctypes.CDLL(None, use_errno=True)
PIECE = 16 << 20
kept = []
for _ in range(40):
    piece = mmap.mmap(-1, PIECE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    address = ctypes.addressof(ctypes.c_char.from_buffer(piece))
    ctypes.memset(address, 1, PIECE)
    libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(PIECE), 1)
    kept.append(piece)
    # Where the server looks from outside it looks every 100 ms, and what a program holds between
    # two looks is not promised.
    time.sleep(0.4)
