# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "read the memory of a process of the same user"
# evidence = { secret = "victim" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes

libc = ctypes.CDLL(None, use_errno=True)
for line in open("/proc/@VICTIM@/maps"):
    if "[stack]" in line:
        start, end = (int(word, 16) for word in line.split()[0].split("-"))
        memory = ctypes.create_string_buffer(end - start)
        ours = (ctypes.c_size_t * 2)(ctypes.addressof(memory), end - start)
        theirs = (ctypes.c_size_t * 2)(start, end - start)
        print(libc.process_vm_readv(int("@VICTIM@"), ours, 1, theirs, 1, 0))
        found = memory.raw.find(b"VICTIM_SECRET")
        print(memory.raw[found : found + 60])
