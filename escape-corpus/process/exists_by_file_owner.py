# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a process exists, by making it the owner of a file's signals"
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
number = {"x86_64": 72, "aarch64": 25}[os.uname().machine]
print(libc.syscall(number, os.pipe()[0], 8, int("@VICTIM@")) >= 0, ctypes.get_errno())
