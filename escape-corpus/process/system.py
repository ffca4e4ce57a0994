# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "run a command line"
# evidence = { process = "second" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

marker = open("@TOKEN@", "w")
os.set_inheritable(marker.fileno(), True)
os.system("sleep 60 &")
await mcp__desk__look(token="@TOKEN@")
