import errno
import json
import mmap
import os
import socket
import threading
import time

found = {}

# Threads first: their stacks count as memory.
count, stop = 0, threading.Event()
try:
    while count < 5000:
        threading.Thread(target=stop.wait, daemon=True).start()
        count += 1
except RuntimeError:
    pass
found["threads"] = count
stop.set()
while threading.active_count() > 1:
    time.sleep(0.001)

held = []
try:
    while len(held) < 10000:
        held.append(bytearray(4 << 20))
except MemoryError:
    pass
found["memory_mib"] = 4 * len(held)
del held

found["uncounted"] = []
for flags in (0x21, 0x23, 0x28, 0x122):
    try:
        mmap.mmap(-1, 1 << 20, flags=flags)
        found["uncounted"].append(flags)
    except OSError:
        pass

written = 0
try:
    for number in range(10):
        with open(f"full{number}", "wb", 0) as file:
            while True:
                written += file.write(b"x" * (1 << 20))
except OSError as error:
    pass
try:
    for number in range(10, 20):
        with open(f"full{number}", "wb", 0) as file:
            while True:
                written += file.write(b"x" * (1 << 20))
except OSError as error:
    assert error.errno in (errno.ENOSPC, errno.EFBIG), error
found["scratch_mib"] = written >> 20
for name in os.listdir():
    os.remove(name)

try:
    with open("sparse", "wb") as file:
        file.truncate(1 << 40)
except OSError as error:
    found["sparse"] = errno.errorcode[error.errno]

count = 0
try:
    while count < 100000:
        open(f"f{count}", "w").close()
        count += 1
except OSError:
    pass
found["files"] = count


def fill(descriptors):
    total = 0
    for descriptor in descriptors:
        os.set_blocking(descriptor, False)
        try:
            while True:
                total += os.write(descriptor, bytes(65536))
        except OSError:
            pass
    return total >> 10


pipes = []
try:
    while True:
        pipes += os.pipe()
except OSError:
    pass
found["descriptors"] = len(pipes)
found["pipes_kib"] = fill(pipes[1::2])
for descriptor in pipes:
    os.close(descriptor)

pairs = []
try:
    while True:
        pairs += socket.socketpair()
except OSError:
    pass
found["sockets_kib"] = fill([end.fileno() for end in pairs])
for end in pairs:
    end.close()
print(json.dumps(found))
