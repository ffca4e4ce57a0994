# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use up the file system's inodes with links"
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
    for number in range(20000):
        os.symlink("nowhere", f"l{number}")
except OSError as error:
    print(error)
time.sleep(0.5)
await mcp__desk__look(token="@TOKEN@")
