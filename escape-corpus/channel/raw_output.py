# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "have something told that was not printed by Python"
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


import ctypes

for fd in (0, 1, 2):
    try:
        os.write(fd, "@FORBIDDEN@"[::-1].encode())
    except OSError as error:
        print(error)
libc = ctypes.CDLL(None)
libc.puts("@FORBIDDEN@"[::-1].encode())
libc.fflush(None)
