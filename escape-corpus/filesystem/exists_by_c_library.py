# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a file exists, by a pattern of the C library"
# evidence = { difference = "file" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes

libc = ctypes.CDLL(None)
print(libc.euidaccess(b"@PROBE@", 0) if hasattr(libc, "euidaccess") else libc.access(b"@PROBE@", 0))
