# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make a file system with the newer calls"
# evidence = { object = "anon_inode:[fscontext]" }
# needs = ["linux", "root"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes

marker = open("@TOKEN@", "w")
ctypes.CDLL(None).syscall(430, b"tmpfs", 0)
await mcp__desk__look(token="@TOKEN@")
