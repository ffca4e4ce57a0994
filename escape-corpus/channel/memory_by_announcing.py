# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make the server reserve room for a frame of four gigabytes"
# evidence = { bound = "server-memory" }
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


os.write(4, b"\xff\xff\xff\xff" + bytes(60000))
