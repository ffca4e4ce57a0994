# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "watch what happens to whole file systems"
# evidence = { object = "anon_inode:[fanotify]" }
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
ctypes.CDLL(None).fanotify_init(0, 0)
await mcp__desk__look(token="@TOKEN@")
