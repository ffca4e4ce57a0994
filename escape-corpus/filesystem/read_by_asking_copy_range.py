# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "have the kernel copy a file of the host into the scratch directory"
# evidence = { secret = "canary" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

source = os.open("@CANARY@", os.O_RDONLY)
target = os.open("copy", os.O_RDWR | os.O_CREAT)
os.sendfile(target, source, 0, 100)
print(os.pread(target, 100, 0))
