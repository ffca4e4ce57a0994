# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "connect by a name, which must be looked up first"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import socket

socket.create_connection(("localhost", int("@TCP@")), 2)
