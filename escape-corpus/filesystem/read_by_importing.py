# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "import a module that lies outside"
# evidence = { secret = "canary" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import sys

sys.path.insert(0, "@TREE@/package")
import planted

print(planted.SECRET)
