# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "fill memory of the kernel through the buffers of pipes"
# evidence = { bound = "memory" }
# needs = ["linux", "cap_sys_resource"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import fcntl
import os
import time

kept = []
try:
    while True:
        ready, tell = os.pipe()
        kept += ready, tell
        os.set_blocking(tell, False)
        for size in (1 << 24, 1 << 22, 1 << 20):
            try:
                fcntl.fcntl(tell, 1031, size)
                break
            except OSError:
                pass
        try:
            while True:
                os.write(tell, bytes(1 << 20))
        except BlockingIOError:
            pass
except OSError as error:
    print(error)
time.sleep(1)
