# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "fill memory of the kernel through the buffers of sockets"
# evidence = { bound = "memory" }
# needs = ["linux", "root"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import socket
import time

kept = []
try:
    for _ in range(60):
        ours, theirs = socket.socketpair()
        kept += ours, theirs
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, 32, 8 << 20)
            end.setblocking(False)
            try:
                while True:
                    end.send(bytes(1 << 20))
            except BlockingIOError:
                pass
except OSError as error:
    print(error)
time.sleep(1)
