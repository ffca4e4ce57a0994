# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "keep running with nothing that the server could see"
# evidence = { bound = "time" }
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

os.closerange(0, 1024)
time.sleep(60)
