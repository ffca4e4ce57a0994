# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "mount a file system of its own"
# evidence = { state = "mountinfo" }
# needs = ["linux", "root"]
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
os.mkdir("point")
await mcp__desk__look(token="@TOKEN@")
libc.mount(b"tmpfs", b"point", b"tmpfs", 0, b"size=4k")
await mcp__desk__look(token="@TOKEN@")
libc.umount2(b"point", 2)
