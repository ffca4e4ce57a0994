# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "become a fresh interpreter, without the server's half in it"
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
os.execv(sys.executable, [sys.executable, "-I", "-S", "-c", PAYLOAD, "@IMAGE@"])
