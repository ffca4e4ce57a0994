# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "find what an earlier program left in a folder for all"
# evidence = { difference = "earlier-run" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

print(os.path.exists("/tmp/@TOKEN@"))
open("/tmp/@TOKEN@", "w").close()
