# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use up the file system's inodes"
# evidence = { bound = "scratch-files" }
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
    for number in range(200000):
        os.close(os.open(f"f{number}", os.O_CREAT))
except OSError as error:
    print(error)
time.sleep(0.5)
await mcp__desk__look(token="@TOKEN@")
