# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "change the times of a device's file, which everybody may write to"
# evidence = { change = "devices" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

os.utime("/dev/null")
os.utime("/dev/random")
