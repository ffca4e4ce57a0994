# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "find what an earlier program left in shared memory"
# evidence = { difference = "earlier-run" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

print(os.path.exists("/dev/shm/@TOKEN@"))
open("/dev/shm/@TOKEN@", "w").close()
