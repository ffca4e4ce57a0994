# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a process exists, by its list of locks"
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
number = {"x86_64": 274, "aarch64": 100}[os.uname().machine]
print(libc.syscall(number, int("@VICTIM@"), ctypes.byref(ctypes.c_void_p()), ctypes.byref(ctypes.c_size_t())) >= 0, ctypes.get_errno())
