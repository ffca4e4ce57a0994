# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "exchange a file of the host for one of its own"
# evidence = { change = "files" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes

open("mine", "w").write("here")
libc = ctypes.CDLL(None)
libc.renameat2(-100, b"mine", -100, b"@CANARY@", 2)
