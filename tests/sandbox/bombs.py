import ctypes
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

libc = ctypes.CDLL(None, use_errno=True)
libc.mremap.restype = ctypes.c_void_p
libc.getauxval.restype = ctypes.c_ulong


def call(function, address, *rest):
    return function(ctypes.c_void_p(address), *(ctypes.c_size_t(value) for value in rest))


# Filled, and then locked against writing: does it still count?
held = []
try:
    while len(held) < 1000:
        piece = mmap.mmap(-1, 4 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        address = ctypes.addressof(ctypes.c_char.from_buffer(piece))
        ctypes.memset(address, 1, 4 << 20)
        call(libc.mprotect, address, 4 << 20, 1)
        held.append(piece)
except OSError as error:
    assert error.errno == errno.ENOMEM, error
found["locked_mib"] = 4 * len(held)
del held, piece

# The stack does not count: it must not be cut into pieces, each of which could grow or be moved.
stack = libc.getauxval(25) & ~4095  # AT_RANDOM
below = stack - (4 << 20)
ctypes.memset(below, 1, 1)
found["cut"] = []
for name, cut in {
    "move": lambda: call(libc.mremap, stack, 4096, 64 << 20, 1) != ctypes.c_void_p(-1).value,
    "advise": lambda: call(libc.madvise, below, 4096, 16) == 0,
    "protect": lambda: call(libc.mprotect, below, 4096, 7) == 0,
    "unmap": lambda: call(libc.munmap, below + 8192, 4096) == 0,
    "unmap from far below": lambda: call(libc.munmap, below - (3 << 30), (3 << 30) + 4096) == 0,
    "map over": lambda: call(libc.mmap, below + 16384, 4096, 3, 0x32, 2**64 - 1, 0) not in (-1, 2**32 - 1),
}.items():
    if cut():
        found["cut"].append(name)

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


count = 0
for _ in range(100):
    try:
        if os.fork() == 0:
            os._exit(0)
        count += 1
    except OSError:
        pass
found["forks"] = count

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

# First, since it is the beginning of the output that is kept.
print(json.dumps(found))
for _ in range(300):
    print("x" * (1 << 20))
