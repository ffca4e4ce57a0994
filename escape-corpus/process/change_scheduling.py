# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "change how a process is scheduled"
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

os.sched_setscheduler(int("@VICTIM@"), os.SCHED_IDLE, os.sched_param(0))
