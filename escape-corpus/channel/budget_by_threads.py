# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make more calls than it may, from many threads"
# evidence = { reached = "budget" }
# stopped-everywhere = "the server holds this in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import threading


def body():
    for _ in range(10):
        try:
            mcp__desk__echo(token="@TOKEN@").send(None)
        except (StopIteration, ToolError):
            pass


threads = [threading.Thread(target=body) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
