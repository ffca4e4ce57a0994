# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "change a host file through a descriptor that may not even read it"
# evidence = { change = "files" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

fd = os.open("@CANARY@", os.O_RDONLY)
os.fchmod(fd, 0o700)
