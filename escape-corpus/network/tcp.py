# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "connect to a service of the host"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import socket

socket.create_connection(("127.0.0.1", int("@TCP@")), 2)
