# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "start a program"
# evidence = { process = "second" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import subprocess
import sys

marker = open("@TOKEN@", "w")
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=[marker.fileno()])
await mcp__desk__look(token="@TOKEN@")
