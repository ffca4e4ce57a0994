# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "join the namespaces of another process"
# evidence = { state = "ns/net" }
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
libc.unshare(0x40000000)
fd = os.open("/proc/@VICTIM@/ns/net", os.O_RDONLY)
await mcp__desk__look(token="@TOKEN@")
libc.setns(fd, 0)
await mcp__desk__look(token="@TOKEN@")
