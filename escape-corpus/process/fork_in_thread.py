# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make a second process from another thread"
# evidence = { process = "second" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os
import threading
import time

marker = open("@TOKEN@", "w")


def body():
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)


thread = threading.Thread(target=body)
thread.start()
thread.join()
await mcp__desk__look(token="@TOKEN@")
