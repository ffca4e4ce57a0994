# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "keep a file in memory that counts as no memory"
# evidence = { object = "/memfd:" }
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
kept = os.memfd_create("mine")
await mcp__desk__look(token="@TOKEN@")
