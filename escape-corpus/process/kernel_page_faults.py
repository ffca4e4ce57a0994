# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "pause the kernel in the middle of its work"
# evidence = { object = "anon_inode:[userfaultfd]" }
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

marker = open("@TOKEN@", "w")
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 323, "aarch64": 282}[os.uname().machine]
print(libc.syscall(number, 1), ctypes.get_errno())
await mcp__desk__look(token="@TOKEN@")
