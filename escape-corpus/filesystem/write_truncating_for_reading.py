# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "empty a file of the host that is only opened for reading"
# evidence = { change = "files" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

os.open("@CANARY@", os.O_RDONLY | os.O_TRUNC)
