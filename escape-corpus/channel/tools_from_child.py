# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "call tools from a process that it left behind"
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


import time

marker = open("@TOKEN@", "w")
kept = os.dup(4)
program = os.getpid()
if os.fork() == 0:
    os.setsid()
    os.dup2(kept, 4)
    while os.getppid() == program:
        time.sleep(0.01)
    for number in range(1000, 1010):
        send('{"type":"call","id":%d,"tool":"mcp__desk__echo","arguments":{"token":"@TOKEN@"}}' % number)
    os._exit(0)
