# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "start a program with asyncio"
# evidence = { process = "second" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import asyncio
import sys

marker = open("@TOKEN@", "w")
arguments = [sys.executable, "-c", "import time; time.sleep(60)"]
child = await asyncio.create_subprocess_exec(*arguments, pass_fds=[marker.fileno()])
await mcp__desk__look(token="@TOKEN@")
