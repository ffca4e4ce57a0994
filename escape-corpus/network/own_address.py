# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn the address of the host in its network"
# evidence = { secret = "address" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import socket

ours = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ours.connect(("192.0.2.1", 9))
print(ours.getsockname()[0])
