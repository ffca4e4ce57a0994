# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make a process that is the server's child and not its own"
# evidence = { process = "second" }
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
import time

marker = open("@TOKEN@", "w")
clone = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
CLONE_PARENT = 0x8000
if ctypes.PyDLL(None).syscall(clone, CLONE_PARENT | 17, 0, 0, 0, 0) == 0:
    time.sleep(60)
    os._exit(0)
await mcp__desk__look(token="@TOKEN@")
