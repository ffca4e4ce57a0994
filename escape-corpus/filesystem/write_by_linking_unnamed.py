# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "write a file without a name, then name it on the host"
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
import os

fd = os.open("@TREE@", os.O_TMPFILE | os.O_RDWR)
os.write(fd, b"here")
ctypes.CDLL(None).linkat(-100, b"/proc/self/fd/%d" % fd, -100, b"@TREE@/new", 0x400)
