# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "join another group"
# evidence = { state = "status/Gid" }
# needs = ["linux", "root"]
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
await mcp__desk__look(token="@TOKEN@")
os.setresgid(12345, 12345, 12345)
await mcp__desk__look(token="@TOKEN@")
