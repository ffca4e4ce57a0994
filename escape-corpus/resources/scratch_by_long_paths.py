# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "fill the disk below a path that is longer than a path may be"
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
    for number in range(24):
        os.mkdir("n" * 240)
        os.chdir("n" * 240)
    for number in range(100):
        with open(str(number), "wb") as file:
            file.write(bytes(1 << 20))
except OSError as error:
    print(error)
os.chdir(os.environ["HOME"])
time.sleep(0.5)
await mcp__desk__look(token="@TOKEN@")
