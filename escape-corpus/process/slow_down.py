# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make a process of the same user slower"
# evidence = { change = "victim" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

os.setpriority(os.PRIO_PROCESS, int("@VICTIM@"), 15)
