# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "run before every other process"
# evidence = { state = "stat/policy" }
# needs = ["linux", "root"]
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
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
await mcp__desk__look(token="@TOKEN@")
