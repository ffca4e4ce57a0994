# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "set the flags of a host file that no permission shows"
# evidence = { change = "files" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import fcntl
import os

fd = os.open("@CANARY@", os.O_RDONLY)
fcntl.ioctl(fd, 0x40086602, b"\x40\0\0\0\0\0\0\0")
