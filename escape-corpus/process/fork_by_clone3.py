# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make a second process by the call whose arguments a filter cannot see"
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
arguments = (ctypes.c_uint64 * 8)()
arguments[4] = 17
if ctypes.PyDLL(None).syscall(435, arguments, ctypes.sizeof(arguments)) == 0:
    time.sleep(60)
    os._exit(0)
await mcp__desk__look(token="@TOKEN@")
