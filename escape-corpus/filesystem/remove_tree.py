# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "remove a whole tree of the host"
# evidence = { change = "files" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import shutil

shutil.rmtree("@TREE@/folder")
