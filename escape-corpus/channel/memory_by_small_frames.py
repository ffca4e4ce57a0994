# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "keep the server busy with very many small frames"
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


body = b'{"type":"output","text":""}'
frames = (len(body).to_bytes(4, "big") + body) * 1000
for _ in range(200):
    rest = frames
    while rest:
        rest = rest[os.write(4, rest) :]
