# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "send a datagram to a service of the host"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import socket

socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", int("@UDP@")))
