# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "start a shell"
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

marker = open("@TOKEN@", "w")
subprocess.Popen("sleep 60; true", shell=True, pass_fds=[marker.fileno()])
await mcp__desk__look(token="@TOKEN@")
