# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "fill the disk with files that are each small enough"
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
    for number in range(200):
        with open(f"part{number}", "wb") as file:
            file.write(bytes(1 << 20))
except OSError as error:
    print(error)
time.sleep(0.5)
await mcp__desk__look(token="@TOKEN@")
