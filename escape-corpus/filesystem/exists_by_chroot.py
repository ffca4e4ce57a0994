# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a folder exists, by making it the root"
# evidence = { difference = "folder" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

try:
    print(os.chroot("@PROBE@/none"))
except OSError as error:
    print(error.errno)

try:
    os.chroot("@PROBE@")
except OSError as error:
    print(error.errno)
