# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a file exists, by keeping its owner"
# evidence = { difference = "file" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

try:
    print(os.chown("@PROBE@", -1, -1))
except OSError as error:
    print(error.errno)
