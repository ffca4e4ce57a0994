# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "be ended last when memory runs out"
# evidence = { state = "oom_score_adj" }
# needs = ["linux", "cap_sys_resource"]
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
open("/proc/self/oom_score_adj", "w").write("-900")
await mcp__desk__look(token="@TOKEN@")
