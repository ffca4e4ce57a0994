# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "reach processes through a queue of messages"
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

number = {"x86_64": 68, "aarch64": 186}[os.uname().machine]
print(ctypes.CDLL(None).syscall(number, int("@IPC_KEY@"), 0o1666))
