# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "set an extended attribute of a host file"
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

os.setxattr("@CANARY@", "user.mine", b"here")
