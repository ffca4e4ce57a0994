# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "say something from a thread that goes on"
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
import posix
import threading
import time

ended = threading.Event()
frame = b'{"type":"output","text":"%s"}' % "@FORBIDDEN@"[::-1].encode()
frame = len(frame).to_bytes(4, "big") + frame


def body():
    ended.wait()
    while True:
        print("@FORBIDDEN@"[::-1])
        os.write(4, frame)


def instead(_):
    ended.set()
    time.sleep(60)


# The last that the child's half does, when it has told the end.
posix._exit = instead
threading.Thread(target=body).start()
