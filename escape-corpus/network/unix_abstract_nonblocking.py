# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "connect without waiting for it"
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

ours = socket.socket(socket.AF_UNIX)
ours.setblocking(False)
print(ours.connect_ex("\x00@ABSTRACT@"))
