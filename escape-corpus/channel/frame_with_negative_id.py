# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "count as successful after a negative id"
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


send('{"type":"call","id":-1,"tool":"mcp__desk__echo","arguments":{}}')
