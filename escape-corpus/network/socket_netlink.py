# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "ask the kernel about the network"
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
kept = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
await mcp__desk__look(token="@TOKEN@")
