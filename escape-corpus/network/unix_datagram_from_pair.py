# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use one end of a pair, which needs no socket call, to address anybody"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import socket

ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
ours.sendto(b"x", "@DATAGRAM@")
