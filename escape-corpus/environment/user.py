# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn the number of the user"
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

print(os.getuid())
print(os.geteuid())
