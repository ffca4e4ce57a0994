# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a process exists, by its priority"
# evidence = { difference = "process" }
# gap = "without a namespace of processes it can be asked whether a number is in use (contract B3)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "escapes"
# seatbelt = "escapes"
# none = "escapes"
# ///
import os

try:
    print(os.getpriority(os.PRIO_PROCESS, int("@VICTIM@")))
except OSError as error:
    print(error.errno)
