# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a folder exists, by making a temporary file in it"
# evidence = { difference = "folder" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import tempfile

try:
    print(len(tempfile.mkstemp(dir="@PROBE@", prefix="") and "x"))
except OSError as error:
    print(error.errno)
