# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "raise its own priority"
# evidence = { state = "stat/nice" }
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
os.nice(-10)
await mcp__desk__look(token="@TOKEN@")
