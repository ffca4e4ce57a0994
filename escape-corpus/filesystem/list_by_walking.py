# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "walk through a tree of the host"
# evidence = { secret = "name" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

for found in os.walk("@TREE@"):
    print(found)
