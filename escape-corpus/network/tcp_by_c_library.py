# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "connect with the C library"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes
import socket

libc = ctypes.CDLL(None)
fd = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
address = b"\x02\x00" + int("@TCP@").to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
if socket.has_dualstack_ipv6 and __import__("sys").platform == "darwin":
    address = b"\x10\x02" + address[2:]
libc.connect(fd, address, 16)
