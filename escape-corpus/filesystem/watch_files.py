# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "watch what happens to files"
# evidence = { object = "anon_inode:inotify" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes

marker = open("@TOKEN@", "w")
ctypes.CDLL(None).inotify_init()
await mcp__desk__look(token="@TOKEN@")
