# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "change the owner of a host file, if only to the same one"
# evidence = { change = "files" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

found = os.stat("@CANARY@")
os.chown("@CANARY@", found.st_uid, found.st_gid)
