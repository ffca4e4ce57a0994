# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a folder exists, by removing it as a file"
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
    print(os.unlink("@PROBE@"))
except OSError as error:
    print(error.errno)
