# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make another folder the root, where a way out can be built"
# evidence = { state = "root" }
# needs = ["linux", "root"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

marker = open("@TOKEN@", "w")
await mcp__desk__look(token="@TOKEN@")
os.mkdir("jail")
os.chroot("jail")
await mcp__desk__look(token="@TOKEN@")
