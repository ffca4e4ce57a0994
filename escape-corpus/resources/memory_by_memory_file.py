# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use memory that counts as a file"
# evidence = { bound = "memory" }
# needs = ["linux"]
# stopped-everywhere = "this limit holds in every mode (contract B6)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import os
import time

kept = [os.memfd_create("mine") for _ in range(45)]
for fd in kept:
    try:
        for _ in range(15):
            os.write(fd, bytes(1 << 20))
    except OSError:
        pass
    # Where the server looks from outside it looks every 100 ms, and what a program holds between two
    # looks is not promised.
    time.sleep(0.4)
