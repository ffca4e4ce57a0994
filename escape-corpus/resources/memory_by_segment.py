# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use memory that outlives the process"
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
import time

libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
segment = libc.shmget(int("@IPC_KEY@"), ctypes.c_size_t(640 << 20), 0o1666)
PIECE = 16 << 20
for start in range(0, 640 << 20, PIECE):
    # Attached for a moment only, so that hardly any of it is ever the program's own.
    memory = libc.shmat(segment, None, 0)
    ctypes.memset(memory + start, 1, PIECE)
    libc.shmdt(ctypes.c_void_p(memory))
time.sleep(1)
libc.shmctl(segment, 0, None)
