# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "read a file of the host through the root of the parent process"
# evidence = { secret = "canary" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

print(open(f"/proc/{os.getppid()}/root@CANARY@").read())
