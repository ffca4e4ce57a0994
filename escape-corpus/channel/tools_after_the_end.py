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


import threading
import time

call = '{"type":"call","id":%d,"tool":"mcp__desk__echo","arguments":{"token":"@TOKEN@"}}'


def body():
    time.sleep(0.05)
    for number in range(1000, 2000):
        send(call % number)


threading.Thread(target=body).start()
