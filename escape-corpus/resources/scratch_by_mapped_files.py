# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "fill the disk with files that have no name and are not open, but mapped"
# evidence = { bound = "scratch-bytes" }
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
import os
import time

marker = open("@TOKEN@", "w")
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
SIZE = 8 << 20
for number in range(12):
    file = os.open(f"file{number}", os.O_RDWR | os.O_CREAT)
    os.ftruncate(file, SIZE)
    place = libc.mmap(None, ctypes.c_size_t(SIZE), 3, mmap.MAP_SHARED, file, ctypes.c_long(0))
    os.close(file)
    os.remove(f"file{number}")
    if place == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    ctypes.memset(place, 1, SIZE)
    # Where the server looks from outside it looks every 100 ms, and what a program holds between
    # two looks is not promised.
    time.sleep(0.4)
await mcp__desk__look(token="@TOKEN@")
