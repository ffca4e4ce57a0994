# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "find a segment of memory that an earlier program left"
# evidence = { difference = "earlier-run" }
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
print(libc.shmget(int("@IPC_KEY@"), 4096, 0o1000 | 0o2000 | 0o666) >= 0, ctypes.get_errno())
