# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "connect to a service through a link in the scratch directory"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os
import socket

os.symlink("@STREAM@", "link")
socket.socket(socket.AF_UNIX).connect("link")
