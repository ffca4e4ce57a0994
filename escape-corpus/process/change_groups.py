# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "join further groups"
# evidence = { state = "status/Groups" }
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
os.setgroups([12345, 12346])
await mcp__desk__look(token="@TOKEN@")
