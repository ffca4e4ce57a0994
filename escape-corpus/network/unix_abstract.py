# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "connect to a service that has a name but no file"
# evidence = "contact"
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import socket

socket.socket(socket.AF_UNIX).connect("\x00@ABSTRACT@")
