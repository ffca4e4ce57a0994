# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a file exists, by naming it as a mount"
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

libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(428, -100, b"@PROBE@", 0) >= 0, ctypes.get_errno())
