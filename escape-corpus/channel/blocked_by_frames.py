# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "call a tool that is blocked, past the server's half, by every name that it could have"
# evidence = { reached = "blocked" }
# stopped-everywhere = "the server holds this in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import os


def send(body):
    if isinstance(body, str):
        body = body.encode()
    frame = len(body).to_bytes(4, "big") + body
    while frame:
        frame = frame[os.write(4, frame) :]


names = ["mcp__desk__hidden", "hidden", "desk.hidden", "mcp__desk__hidden_2", "mcp__desk__hidden ", "MCP__desk__hidden",
         "mcp__desk__hidden\\u0000", "mcp__desk__../hidden", "mcp__desk__echo\\nhidden", "desk__hidden", "mcp__DESK__hidden"]
for number, name in enumerate(names):
    send('{"type":"call","id":%d,"tool":"%s","arguments":{"token":"@TOKEN@","name":"hidden"}}' % (number, name))
heard = b""
while heard.count(b'"type"') < len(names):
    heard += os.read(3, 65536)
