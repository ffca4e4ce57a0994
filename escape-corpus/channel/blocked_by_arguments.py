# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "call a blocked tool by arguments that overwrite the name"
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


send('{"type":"call","id":1,"tool":"mcp__desk__echo","arguments":{"token":"@TOKEN@"},"name":"hidden"}')
send('{"type":"call","id":2,"tool":"mcp__desk__echo","arguments":{"token":"@TOKEN@","name":"hidden","arguments":{}}}')
send('{"type":"call","id":3,"tool":"mcp__desk__echo","arguments":{"token":"@TOKEN@"},"method":"tools/call","params":{"name":"hidden"}}')
heard = b""
while heard.count(b'"type"') < 3:
    heard += os.read(3, 65536)
