# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "queue a signal with a forged sender"
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
queue = {"x86_64": 129, "aarch64": 138}[os.uname().machine]
info = (ctypes.c_int * 32)(9, 0, -1)
libc.syscall(queue, int("@VICTIM@"), 9, info)
