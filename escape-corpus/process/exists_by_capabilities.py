# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a process exists, by its rights"
# evidence = { difference = "process" }
# needs = ["linux"]
# gap = "without a namespace of processes it can be asked whether a number is in use (contract B3)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "escapes"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 125, "aarch64": 90}[os.uname().machine]
print(libc.syscall(number, (ctypes.c_uint32 * 2)(0x20080522, int("@VICTIM@")), (ctypes.c_uint32 * 6)()) >= 0, ctypes.get_errno())
