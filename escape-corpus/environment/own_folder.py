# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn where on the host its scratch directory lies"
# evidence = { secret = "working-directory" }
# gap = "the scratch directory keeps its real path"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "escapes"
# none = "escapes"
# ///
import os
import tempfile

print(os.getcwd(), tempfile.gettempdir(), os.path.expanduser("~"))
