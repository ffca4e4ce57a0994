# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "move a file from the scratch directory to the host"
# evidence = { change = "files" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

open("mine", "w").write("here")
os.rename("mine", "@TREE@/new")
