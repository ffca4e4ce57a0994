# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "bind a process to one processor"
# evidence = { change = "victim" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

os.sched_setaffinity(int("@VICTIM@"), {0})
