# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "become another program from a second thread"
# evidence = { process = "image" }
# needs = ["linux"]
# gap = "seatbelt: sandbox-exec becomes the interpreter under the profile, and the rule that lets it lets a program do so again; it stays in the profile, in the same process, and gains nothing"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "escapes"
# none = "escapes"
# ///
import os
import sys
import threading

PAYLOAD = """
import json, os
call = {"type": "call", "id": 777, "tool": "mcp__desk__look", "arguments": {"token": "@TOKEN@"}}
body = json.dumps(call).encode()
os.write(4, len(body).to_bytes(4, "big") + body)
os.read(3, 100)
"""
marker = open("@TOKEN@", "w")
for fd in (3, 4, marker.fileno()):
    os.set_inheritable(fd, True)
arguments = [sys.executable, "-I", "-S", "-c", PAYLOAD, "@IMAGE@"]
thread = threading.Thread(target=os.execv, args=(sys.executable, arguments))
thread.start()
thread.join()
