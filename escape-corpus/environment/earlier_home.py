# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "find what an earlier program left in its home"
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
import tempfile

print(os.listdir(os.path.expanduser("~")), os.listdir(tempfile.gettempdir()))
tempfile.mkstemp()
