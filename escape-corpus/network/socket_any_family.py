# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "find a family of sockets that was forgotten"
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
for family in range(2, 64):
    for kind in (1, 2, 3, 5):
        try:
            kept.append(socket.socket(family, kind))
            break
        except OSError:
            pass
await mcp__desk__look(token="@TOKEN@")
