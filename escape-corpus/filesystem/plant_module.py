# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "plant a module where every later program would import it"
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

open(os.path.dirname(os.__file__) + "/@TOKEN@.py", "w").write("")
