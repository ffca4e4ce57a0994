# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "become a shell"
# evidence = { process = "image" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import json
import os

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
call = {"type": "call", "id": 777, "tool": "mcp__desk__look", "arguments": {"token": "@TOKEN@"}}
body = json.dumps(call).encode()
frame = "".join(f"\\{byte:03o}" for byte in len(body).to_bytes(4, "big") + body)
os.execv("/bin/sh", ["sh", "-c", f"printf '{frame}' >&4; head -c 1 <&3", "@IMAGE@"])
