# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "kill a process of the same user"
# evidence = { change = "victim" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os
import signal

os.kill(int("@VICTIM@"), signal.SIGKILL)
