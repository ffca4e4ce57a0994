# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "fill memory of the kernel with the tables of mappings that lie far apart"
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
libc.mmap.restype = ctypes.c_void_p
PRIVATE_ANONYMOUS_FIXED = 0x32
zero, page = ctypes.c_long(0), ctypes.c_size_t(4096)
for number in range(1024, 62000):
    place = libc.mmap(ctypes.c_void_p(number << 30), page, 1, PRIVATE_ANONYMOUS_FIXED, -1, zero)
    if place == number << 30:
        ctypes.string_at(place, 1)
    if number % 2000 == 0:
        # Where the server looks from outside it looks every 100 ms, and what a program holds between
        # two looks is not promised.
        time.sleep(0.4)
