# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "offer a service to the host"
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
kept = socket.socket()
kept.bind(("127.0.0.1", 0))
kept.listen()
await mcp__desk__look(token="@TOKEN@")
