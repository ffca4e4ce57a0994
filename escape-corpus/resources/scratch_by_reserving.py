# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "fill the disk without writing"
# evidence = { bound = "scratch-bytes" }
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

marker = open("@TOKEN@", "w")

try:
    for number in range(100):
        fd = os.open(f"part{number}", os.O_RDWR | os.O_CREAT)
        os.posix_fallocate(fd, 0, 8 << 20)
except OSError as error:
    print(error)
time.sleep(0.5)
await mcp__desk__look(token="@TOKEN@")
