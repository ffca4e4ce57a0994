# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "count as successful with the encoder of messages replaced"
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


import gc

for found in gc.get_objects():
    if callable(found) and getattr(found, "__name__", "") == "send" and hasattr(found, "__globals__"):
        found.__globals__["_write"] = lambda frame: os.write(4, b"\xff" * 100)
