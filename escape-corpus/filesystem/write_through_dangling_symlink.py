# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make a file on the host through a link that leads nowhere yet"
# evidence = { change = "files" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

os.symlink("@TREE@/new", "out")
open("out", "w").write("here")
