# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "send with the call for many messages at once"
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
import socket

libc = ctypes.CDLL(None, use_errno=True)
fd = libc.socket(socket.AF_INET, socket.SOCK_DGRAM, 0)
name = ctypes.create_string_buffer(b"\x02\x00" + int("@UDP@").to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8))
text = ctypes.create_string_buffer(b"x")
vector = (ctypes.c_size_t * 2)(ctypes.addressof(text), 1)
message = (ctypes.c_size_t * 8)(ctypes.addressof(name), 16, ctypes.addressof(vector), 1, 0, 0, 0, 0)
libc.sendmmsg(fd, message, 1, 0)
