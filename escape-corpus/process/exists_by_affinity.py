# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a process exists, by its processors"
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
    print(len(os.sched_getaffinity(int("@VICTIM@"))))
except OSError as error:
    print(error.errno)
