# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "switch off the randomness of addresses"
# evidence = { state = "personality" }
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
await mcp__desk__look(token="@TOKEN@")
libc.personality(0x0040000)
await mcp__desk__look(token="@TOKEN@")
