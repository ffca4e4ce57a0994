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
import threading

ended = threading.Event()


def body():
    ended.wait(0.05)
    while True:
        print("@FORBIDDEN@"[::-1])


threading.Thread(target=body).start()
