# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a file exists, by an exclusive creation"
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
    print(os.open("@PROBE@/x", os.O_CREAT | os.O_EXCL | os.O_WRONLY) > 0)
except OSError as error:
    print(error.errno)
