# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make a second process with the C library"
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
if ctypes.PyDLL(None).fork() == 0:
    time.sleep(60)
    os._exit(0)
await mcp__desk__look(token="@TOKEN@")
