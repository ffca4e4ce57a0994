# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "move a file of the host into the scratch directory"
# evidence = { secret = "canary" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

os.rename("@CANARY@", "mine")
print(open("mine").read())
