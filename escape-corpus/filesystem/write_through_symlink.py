# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "write on the host through a symbolic link"
# evidence = { change = "files" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

os.symlink("@TREE@", "out")
open("out/new", "w").write("here")
