# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "fill the disk while the server has no time to look"
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
import threading
import time

marker = open("@TOKEN@", "w")

body = b'{"type":"cancel","id":4294967295}'
frame = len(body).to_bytes(4, "big") + body
with open("frames", "wb") as file:
    file.write(frame * 20_000)
frames = os.open("frames", os.O_RDONLY)
turn = threading.Lock()
ended = False


def flood():
    # The kernel copies, so that this thread takes nothing from the one that writes.
    while not ended:
        at = 0
        with turn:
            while at < len(frame) * 20_000:
                at += os.sendfile(4, frames, at, len(frame) * 20_000 - at)


threads = [threading.Thread(target=flood) for _ in range(2)]
for thread in threads:
    thread.start()
block = bytes(1 << 20)
until = time.monotonic() + 0.8
number = 0
try:
    while time.monotonic() < until:
        if number < 200:
            with open(str(number), "wb") as file:
                file.write(block)
            number += 1
        else:
            time.sleep(0.01)
except OSError as error:
    print(error)
ended = True
for thread in threads:
    thread.join()
await mcp__desk__look(token="@TOKEN@")
