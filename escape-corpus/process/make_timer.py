# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "leave timers in the kernel"
# evidence = { state = "timers" }
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

marker = open("@TOKEN@", "w")
libc = ctypes.CDLL(None, use_errno=True)
await mcp__desk__look(token="@TOKEN@")
print(libc.timer_create(1, 0, ctypes.byref(ctypes.c_void_p())))
await mcp__desk__look(token="@TOKEN@")
