# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "put a file of its own in a host file's place"
# evidence = { change = "files" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

open("mine", "w").write("here")
os.replace("mine", "@CANARY@")
