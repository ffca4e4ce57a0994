# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "take a process over as its debugger"
# evidence = { change = "victim" }
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

libc = ctypes.CDLL(None)
pid = int("@VICTIM@")
if libc.ptrace(16, pid, 0, 0) == 0:
    os.waitpid(pid, 0x40000000)
    libc.ptrace(17, pid, 0, 9)
