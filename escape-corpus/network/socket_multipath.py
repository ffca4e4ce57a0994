# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "reach the network by a protocol beside TCP"
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
kept = []
for protocol in (262, 132, 33, 136, 0):
    try:
        kept.append(socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol))
    except OSError as error:
        print(error.errno)
await mcp__desk__look(token="@TOKEN@")
