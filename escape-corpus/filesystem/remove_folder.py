# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "remove an empty folder of the host"
# evidence = { change = "files" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

os.rmdir("@TREE@/folder/inner")
