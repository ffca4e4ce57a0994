# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "call the C library, which is part of the standard library's promise"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import ctypes
import math

libc = ctypes.CDLL(None)
assert libc.abs(-3) == 3
kept = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x + 1)
assert kept(1) == 2

print("@FORBIDDEN@"[::-1])
