# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "keep the server waiting for the rest of a frame"
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

os.write(4, (1000).to_bytes(4, "big") + b"{")
time.sleep(60)
