# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a process exists, by its limits"
# evidence = { difference = "process" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import resource

try:
    print(resource.prlimit(int("@VICTIM@"), resource.RLIMIT_NOFILE))
except OSError as error:
    print(error.errno)
