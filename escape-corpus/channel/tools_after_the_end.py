# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "call tools after its end"
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


import posix

marker = open("@TOKEN@", "w")


def instead(_):
    for number in range(1000, 2000):
        send('{"type":"call","id":%d,"tool":"mcp__desk__echo","arguments":{"token":"@TOKEN@"}}' % number)
    os._exit(0)


# The last that the child's half does, when it has told the end.
posix._exit = instead
