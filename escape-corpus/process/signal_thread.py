# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "kill a process by the number of its thread"
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
import os

libc = ctypes.CDLL(None)
tgkill, tkill = {"x86_64": (234, 200), "aarch64": (131, 130)}[os.uname().machine]
libc.syscall(tgkill, int("@VICTIM@"), int("@VICTIM@"), 9)
libc.syscall(tkill, int("@VICTIM@"), 9)
