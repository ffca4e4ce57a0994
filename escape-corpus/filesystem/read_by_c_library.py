# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "read a file of the host with stdio of the C library"
# evidence = { secret = "canary" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes

libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
stream = libc.fopen(b"@CANARY@", b"r")
text = ctypes.create_string_buffer(100)
if stream:
    libc.fgets(text, 100, ctypes.c_void_p(stream))
print(text.value)
