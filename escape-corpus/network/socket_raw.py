# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "forge packets of the internet protocol"
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
kept = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
await mcp__desk__look(token="@TOKEN@")
