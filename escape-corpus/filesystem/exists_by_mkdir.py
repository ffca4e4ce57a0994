# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether something is in a folder's place"
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
    print(os.mkdir("@PROBE@/inner"))
except OSError as error:
    print(error.errno)
