# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "reach a folder of the host through a symbolic link to it"
# evidence = { secret = "canary" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

os.symlink("@TREE@", "folder")
print(open("folder/secret.txt").read())
