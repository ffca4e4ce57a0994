# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "read how the server was started"
# evidence = { secret = "command-line" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

for pid in (os.getppid(), int("@SERVER@")):
    try:
        print(open(f"/proc/{pid}/cmdline").read())
    except OSError as error:
        print(error)
