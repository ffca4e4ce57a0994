# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "send a datagram to a socket's file"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import socket

socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", "@DATAGRAM@")
