# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "give a file of its own a second name on the host"
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
os.link("mine", "@TREE@/new")
