# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "lock memory that the host then cannot use"
# evidence = { state = "status/VmLck" }
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
memory = ctypes.create_string_buffer(8 << 20)
print(libc.mlock(memory, 8 << 20))
await mcp__desk__look(token="@TOKEN@")
