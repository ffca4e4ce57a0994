# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use memory that does not count as its own, since it could be shared"
# evidence = { bound = "memory" }
# stopped-everywhere = "this limit holds in every mode (contract B6)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import mmap
import time

kept = []
for _ in range(40):
    piece = mmap.mmap(-1, 16 << 20)
    for page in range(0, 16 << 20, 4096):
        piece[page] = 1
    kept.append(piece)
    # Where the server looks from outside it looks every 100 ms, and what a program holds between
    # two looks is not promised.
    time.sleep(0.4)
