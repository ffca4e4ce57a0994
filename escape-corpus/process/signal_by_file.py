# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "have the kernel signal a process when a file is ready"
# evidence = { change = "victim" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import fcntl
import os

ready, tell = os.pipe()
fcntl.fcntl(ready, fcntl.F_SETOWN, int("@VICTIM@"))
fcntl.fcntl(ready, fcntl.F_SETSIG, 9)
fcntl.fcntl(ready, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
os.write(tell, b"x")
