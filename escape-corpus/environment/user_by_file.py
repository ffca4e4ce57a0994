# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn the number of the user from a file of its own"
# evidence = { secret = "user-id" }
# gap = "a profile changes no user"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "escapes"
# none = "escapes"
# ///
import os

open("mine", "w").close()
print(os.stat("mine").st_uid)
