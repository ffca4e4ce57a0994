# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "hand a descriptor over from one end of a pair"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import array
import socket

rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))
ours, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
ours.sendmsg([b"x"], [rights], 0, "@DATAGRAM@")
