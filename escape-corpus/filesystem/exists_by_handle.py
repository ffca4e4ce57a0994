# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a file exists, by asking for its handle"
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
handle = (ctypes.c_uint32 * 34)(128, 0)
print(libc.name_to_handle_at(-100, b"@PROBE@", handle, ctypes.byref(ctypes.c_int()), 0), ctypes.get_errno())
