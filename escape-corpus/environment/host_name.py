# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn the name of the host"
# evidence = { secret = "host-name" }
# gap = "without a host name namespace the real name shows (contract B3)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "escapes"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

print(os.uname().nodename)
