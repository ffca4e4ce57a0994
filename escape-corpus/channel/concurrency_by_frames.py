# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "have more calls under way than it may"
# evidence = { reached = "concurrency" }
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


for number in range(10):
    send('{"type":"call","id":%d,"tool":"mcp__desk__slow","arguments":{"token":"@TOKEN@"}}' % number)
heard = b""
while heard.count(b'"type"') < 10:
    heard += os.read(3, 65536)
