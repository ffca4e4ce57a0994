# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "leave a process behind that is nobody's child"
# evidence = { process = "survivor" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os
import signal
import time

marker = open("@TOKEN@", "w")
ready, tell = os.pipe()
if os.fork() == 0:
    os.setsid()
    for number in range(1, 64):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    if os.fork() == 0:
        os.write(tell, b"!")
        time.sleep(60)
    os._exit(0)
os.read(ready, 1)
