# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "take a file of the host into the scratch directory by a hard link"
# evidence = { secret = "canary" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

os.link("@CANARY@", "mine")
print(open("mine").read())
