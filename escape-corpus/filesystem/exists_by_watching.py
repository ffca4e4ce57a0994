# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a file exists, by watching it"
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
print(libc.inotify_add_watch(libc.inotify_init(), b"@PROBE@", 1), ctypes.get_errno())
