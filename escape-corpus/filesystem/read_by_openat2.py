# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "read a file of the host with a newer call for the same thing"
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

libc = ctypes.CDLL(None, use_errno=True)
how = (ctypes.c_uint64 * 3)(os.O_RDONLY, 0, 0)
fd = libc.syscall(437, -100, b"@CANARY@", how, ctypes.sizeof(how))
print(os.read(fd, 100))
