# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "fill the disk with files that have no name any more"
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

kept = []
try:
    for _ in range(100):
        file = open("part", "wb", 0)
        os.unlink("part")
        kept.append(file)
        file.write(bytes(8 << 20))
except OSError as error:
    print(error)
time.sleep(0.5)
await mcp__desk__look(token="@TOKEN@")
