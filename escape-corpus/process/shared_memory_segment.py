# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "reach processes through a segment of shared memory"
# evidence = { change = "ipc" }
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

number = {"x86_64": 29, "aarch64": 194}[os.uname().machine]
print(ctypes.CDLL(None).syscall(number, int("@IPC_KEY@"), 4096, 0o1666))
