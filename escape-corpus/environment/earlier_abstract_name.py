# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "find a name that an earlier program's process still holds"
# evidence = { difference = "earlier-run" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os
import socket
import time

marker = open("@TOKEN@", "w")
ready, tell = os.pipe()
ours = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
try:
    ours.bind("\x00@TOKEN@")
    print("free")
except OSError as error:
    print(error.errno)
if os.fork() == 0:
    os.setsid()
    os.write(tell, b"!")
    time.sleep(60)
    os._exit(0)
os.read(ready, 1)
