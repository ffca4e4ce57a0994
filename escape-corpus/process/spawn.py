# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "start a program with the call made for it"
# evidence = { process = "second" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os
import sys

marker = open("@TOKEN@", "w")
os.set_inheritable(marker.fileno(), True)
os.posix_spawn(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)"], {})
await mcp__desk__look(token="@TOKEN@")
