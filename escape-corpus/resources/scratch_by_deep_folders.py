# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "fill the disk where a walk would not get"
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
        os.mkdir("deeper")
        os.chdir("deeper")
        with open("part", "wb") as file:
            file.write(bytes(1 << 20))
        os.chmod("..", 0)
except OSError as error:
    print(error)
os.chdir(os.environ["HOME"])
os.chmod(".", 0o700)
time.sleep(0.5)
await mcp__desk__look(token="@TOKEN@")
