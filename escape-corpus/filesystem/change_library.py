# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "change a file of the standard library"
# evidence = { change = "interpreter" }
# needs = ["root"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

os.chmod(os.__file__, os.stat(os.__file__).st_mode)
