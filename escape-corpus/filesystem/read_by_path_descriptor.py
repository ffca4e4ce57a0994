# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "open a file of the host as a mere path, then again for reading"
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

fd = os.open("@CANARY@", os.O_PATH)
print(open(f"/proc/self/fd/{fd}").read())
