# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "say something from a signal that comes after its end"
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
import signal
import time

frame = b'{"type":"output","text":"%s"}' % "@FORBIDDEN@"[::-1].encode()
frame = len(frame).to_bytes(4, "big") + frame


def speak(*_):
    print("@FORBIDDEN@"[::-1])
    os.write(4, frame)


def instead(_):
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    time.sleep(60)


signal.signal(signal.SIGALRM, speak)
# The last that the child's half does, when it has told the end.
posix._exit = instead
