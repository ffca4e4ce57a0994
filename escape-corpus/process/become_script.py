# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "become a script that names its own interpreter"
# evidence = { process = "image" }
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
open("script", "w").write(f"#!{sys.executable} -IS\n{PAYLOAD}")
os.chmod("script", 0o755)
os.execv("script", ["script", "@IMAGE@"])
