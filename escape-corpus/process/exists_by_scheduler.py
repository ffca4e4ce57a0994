# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a process exists, by its scheduling"
# evidence = { difference = "process" }
# needs = ["linux"]
# gap = "without a namespace of processes it can be asked whether a number is in use (contract B3)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "escapes"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

try:
    print(os.sched_getscheduler(int("@VICTIM@")))
except OSError as error:
    print(error.errno)
