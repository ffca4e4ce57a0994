# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "offer a service under a name that needs no file"
# evidence = { object = "socket:" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import socket

marker = open("@TOKEN@", "w")
kept = socket.socket(socket.AF_UNIX)
kept.bind("\x00@TOKEN@")
kept.listen()
await mcp__desk__look(token="@TOKEN@")
