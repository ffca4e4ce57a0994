# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "say something from a process that it left behind"
# evidence = { answered = "word" }
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


import time

kept = os.dup(4)
if os.fork() == 0:
    os.setsid()
    body = b'{"type":"output","text":"%s"}' % "@FORBIDDEN@"[::-1].encode()
    time.sleep(0.2)
    os.write(kept, len(body).to_bytes(4, "big") + body)
    os._exit(0)
