# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "have a limit of descriptors for each thread, and fill the buffers of all their sockets"
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
import socket
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)
CLOSE_RANGE, UNSHARE = 436, 2
THREADS = 40
threading.stack_size(256 << 10)
stop, full = threading.Event(), threading.Semaphore(0)


def fill():
    kept = []
    try:
        if libc.syscall(CLOSE_RANGE, 60000, 60001, UNSHARE):
            raise OSError(ctypes.get_errno(), "close_range")
        while True:
            ours, theirs = socket.socketpair()
            kept += ours, theirs
            for end in (ours, theirs):
                end.setblocking(False)
                try:
                    while True:
                        end.send(bytes(1 << 18))
                except BlockingIOError:
                    pass
    except OSError as error:
        print(error)
    full.release()
    stop.wait()


for _ in range(THREADS):
    threading.Thread(target=fill, daemon=True).start()
for _ in range(THREADS):
    full.acquire(timeout=1)
time.sleep(0.5)
