# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a file exists, by the newer status call"
# evidence = { difference = "file" }
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

libc = ctypes.CDLL(None, use_errno=True)
statx = {"x86_64": 332, "aarch64": 291}[os.uname().machine]
print(libc.syscall(statx, -100, b"@PROBE@", 0, 0x7FF, ctypes.create_string_buffer(256)), ctypes.get_errno())
