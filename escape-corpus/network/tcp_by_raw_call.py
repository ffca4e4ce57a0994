# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "connect past every wrapper"
# evidence = "contact"
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes
import os

libc = ctypes.CDLL(None)
socket, connect = {"x86_64": (41, 42), "aarch64": (198, 203)}[os.uname().machine]
fd = libc.syscall(socket, 2, 1, 0)
address = b"\x02\x00" + int("@TCP@").to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8)
libc.syscall(connect, fd, address, 16)
