# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "find a folder's descriptor that the server left open and climb from it"
# evidence = { secret = "canary" }
# stopped-everywhere = "no folder's descriptor is inherited in any mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import os

for fd in range(1024):
    try:
        found = os.open("../" * 30 + "@CANARY@"[1:], os.O_RDONLY, dir_fd=fd)
    except OSError:
        continue
    print(os.read(found, 100))
