# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a socket's file exists, by the error of connecting to it"
# evidence = { difference = "socket" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import socket

try:
    print(socket.socket(socket.AF_UNIX).connect("@PROBE@"))
except OSError as error:
    print(error.errno)
