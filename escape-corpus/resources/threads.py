# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "start thousands of threads"
# evidence = { bound = "threads" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import threading
import time

marker = open("@TOKEN@", "w")
threading.stack_size(64 << 10)
try:
    for _ in range(500):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
except RuntimeError as error:
    print(error)
await mcp__desk__look(token="@TOKEN@")
