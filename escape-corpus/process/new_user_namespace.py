# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "become root of a user namespace of its own"
# evidence = { state = "ns/user" }
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
libc.unshare(0x10000000)
await mcp__desk__look(token="@TOKEN@")
