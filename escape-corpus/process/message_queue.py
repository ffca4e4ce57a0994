# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "reach processes through a message queue"
# evidence = { object = "/@TOKEN@-queue" }
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
number = {"x86_64": 240, "aarch64": 180}[os.uname().machine]
kept = libc.syscall(number, b"@TOKEN@-queue", os.O_CREAT | os.O_RDWR, 0o600, 0)
unlink = {"x86_64": 241, "aarch64": 181}[os.uname().machine]
libc.syscall(unlink, b"@TOKEN@-queue")
await mcp__desk__look(token="@TOKEN@")
