# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make a second process by the call behind fork"
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
if ctypes.PyDLL(None).syscall(clone, 17, 0, 0, 0, 0) == 0:
    time.sleep(60)
    os._exit(0)
await mcp__desk__look(token="@TOKEN@")
