# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "fill memory with the stacks of threads"
# evidence = { bound = "memory" }
# stopped-everywhere = "this limit holds in every mode (contract B6)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import threading
import time

threading.stack_size(64 << 20)
hold = threading.Event()


def body(depth=0):
    if depth < 900:
        return body(depth + 1)
    hold.wait(2)


try:
    while True:
        threading.Thread(target=body, daemon=True).start()
except (RuntimeError, MemoryError) as error:
    print(error)
time.sleep(0.5)
