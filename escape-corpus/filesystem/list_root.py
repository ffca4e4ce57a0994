# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "list the root folder of the host"
# evidence = { secret = "root-names" }
# gap = "the loader opens the root folder, so its names can be listed"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "escapes"
# none = "escapes"
# ///
import os

for name in os.listdir("/"):
    print(name)
