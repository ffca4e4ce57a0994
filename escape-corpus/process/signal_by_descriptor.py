# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "kill a process by a descriptor for it"
# evidence = { change = "victim" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes

libc = ctypes.CDLL(None)
libc.syscall(424, libc.syscall(434, int("@VICTIM@"), 0), 9, 0, 0)
