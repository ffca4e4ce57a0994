# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "find a name that an earlier program defined"
# evidence = { difference = "earlier-run" }
# stopped-everywhere = "every program has a fresh process and a scratch directory of its own"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import builtins
import sys

print(hasattr(builtins, "left"), hasattr(sys, "left"), "left" in globals())
builtins.left = sys.left = left = True
