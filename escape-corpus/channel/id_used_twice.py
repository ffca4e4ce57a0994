# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "count as successful after calls that share an id"
# evidence = { answered = "success" }
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


for _ in range(3):
    send('{"type":"call","id":7,"tool":"mcp__desk__slow","arguments":{"token":"@TOKEN@"}}')
os.read(3, 100)
