# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "leave a block of shared memory for another process"
# evidence = { change = "files" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
from multiprocessing import resource_tracker, shared_memory

resource_tracker.register = print
shared_memory.SharedMemory("@TOKEN@", create=True, size=4096)
