# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "read and forge what goes over the wire"
# evidence = { object = "socket:" }
# needs = ["linux", "root"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import socket

marker = open("@TOKEN@", "w")
kept = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
await mcp__desk__look(token="@TOKEN@")
