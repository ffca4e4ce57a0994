# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "take an open file from a process of the same user"
# evidence = { secret = "canary" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes
import os

libc = ctypes.CDLL(None)
theirs = libc.syscall(434, int("@VICTIM@"), 0)
print(os.read(libc.syscall(438, theirs, 0, 0), 100))
