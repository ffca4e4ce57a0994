# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "speak to the hypervisor"
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
kept = socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
await mcp__desk__look(token="@TOKEN@")
