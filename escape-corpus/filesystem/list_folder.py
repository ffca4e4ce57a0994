# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "list a folder of the host"
# evidence = { secret = "name" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

print(os.listdir("@TREE@/folder"))
