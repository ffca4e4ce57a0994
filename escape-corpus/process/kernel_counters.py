# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "measure the processor's inner workings"
# evidence = { object = "anon_inode:[perf_event]" }
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
perf = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
attributes = (ctypes.c_uint64 * 16)(1 | 128 << 32, 0, 0, 0, 0, 1 << 5 | 1 << 6)
print(libc.syscall(perf, attributes, 0, -1, -1, 0), ctypes.get_errno())
await mcp__desk__look(token="@TOKEN@")
