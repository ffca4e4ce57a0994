# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a process exists, by the number of all"
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
import os
import struct

libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 99, "aarch64": 179}[os.uname().machine]
facts = ctypes.create_string_buffer(256)
failed = libc.syscall(number, facts)
# Uptime and loads stand before the counter.
print(failed, ctypes.get_errno(), struct.unpack_from("H", facts, 80)[0])
# It is @VICTIM@ that is there, or not.
