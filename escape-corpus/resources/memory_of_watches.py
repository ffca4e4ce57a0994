# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "have watches over descriptors, whose memory in the kernel no limit of a program counts"
# evidence = { object = "anon_inode:[eventpoll]" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os
import select

marker = open("@TOKEN@", "w")
watcher = select.epoll()
# The same file counts once for each number that it had when it was watched.
file, _ = os.pipe()
for number in range(100, 200):
    os.dup2(file, number)
    watcher.register(number, select.EPOLLIN)
    os.close(number)
await mcp__desk__look(token="@TOKEN@")
