# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "delay its end by hooks and threads"
# evidence = { answered = "failure" }
# stopped-everywhere = "the server holds this in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import atexit
import threading
import time

atexit.register(time.sleep, 60)
threading.Thread(target=time.sleep, args=(60,)).start()


class Left:
    def __del__(self):
        time.sleep(60)


left = Left()
