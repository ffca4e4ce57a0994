# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a process exists, by a signal that does nothing"
# evidence = { difference = "process" }
# gap = "without a namespace of processes it can be asked whether a number is in use (contract B3)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "escapes"
# none = "escapes"
# ///
import os

try:
    print(os.kill(int("@VICTIM@"), 0))
except OSError as error:
    print(error.errno)
