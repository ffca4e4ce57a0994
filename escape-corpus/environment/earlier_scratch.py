# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "find what an earlier program left in its scratch directory"
# evidence = { difference = "earlier-run" }
# stopped-everywhere = "every program has a fresh process and a scratch directory of its own"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import os

print(os.listdir("."))
open("left", "w").write("here")
