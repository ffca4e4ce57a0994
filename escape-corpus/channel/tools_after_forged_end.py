# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "call tools after it has told its end"
# evidence = { reached = "after-the-end" }
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


marker = open("@TOKEN@", "w")
send('{"type":"done","error":null}')
for number in range(1000, 1100):
    send('{"type":"call","id":%d,"tool":"mcp__desk__echo","arguments":{"token":"@TOKEN@"}}' % number)
