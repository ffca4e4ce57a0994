# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a process exists, by its priority at the disk"
# evidence = { difference = "process" }
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
number = {"x86_64": 252, "aarch64": 31}[os.uname().machine]
print(libc.syscall(number, 1, int("@VICTIM@")) >= 0, ctypes.get_errno())
