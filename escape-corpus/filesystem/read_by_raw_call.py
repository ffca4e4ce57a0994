# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "read a file of the host past every wrapper that Python or libc has"
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
openat = {"x86_64": 257, "aarch64": 56}[os.uname().machine]
fd = libc.syscall(openat, -100, b"@CANARY@", os.O_RDONLY)
print(os.read(fd, 100))
