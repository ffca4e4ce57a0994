# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a process exists, by counting its steps"
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
number = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
print(libc.syscall(number, (ctypes.c_uint64 * 16)(1 | 128 << 32, 0, 0, 0, 0, 1 << 5 | 1 << 6), int("@VICTIM@"), -1, -1, 0) >= 0, ctypes.get_errno())
