# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a process exists, by reading a byte of its memory that is not there"
# evidence = { difference = "process" }
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
byte = ctypes.create_string_buffer(1)
ours = (ctypes.c_size_t * 2)(ctypes.addressof(byte), 1)
theirs = (ctypes.c_size_t * 2)(8, 1)
one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
print(libc.process_vm_readv(int("@VICTIM@"), ours, one, theirs, one, none), ctypes.get_errno())
