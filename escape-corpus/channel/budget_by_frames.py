# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make more calls than it may, past the server's half"
# evidence = { reached = "budget" }
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


for number in range(40):
    send('{"type":"call","id":%d,"tool":"mcp__desk__echo","arguments":{"token":"@TOKEN@"}}' % number)
heard = b""
while heard.count(b'"type"') < 40:
    heard += os.read(3, 65536)
