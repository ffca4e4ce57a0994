# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "open the root folder and go on from its descriptor"
# evidence = { secret = "canary" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
fd = os.open("@CANARY@"[1:], os.O_RDONLY, dir_fd=root)
print(os.read(fd, 100))
