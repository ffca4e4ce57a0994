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
import time

frame = b'{"type":"output","text":"%s"}' % "@FORBIDDEN@"[::-1].encode()
frame = len(frame).to_bytes(4, "big") + frame
kept = os.dup(4)
program = os.getpid()
if os.fork() == 0:
    os.setsid()
    while os.getppid() == program:
        time.sleep(0.01)
    os.write(kept, frame)
    os._exit(0)
