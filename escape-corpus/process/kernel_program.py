# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "load a program into the kernel"
# evidence = { object = "anon_inode:bpf-map" }
# needs = ["linux", "root"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes
import os

marker = open("@TOKEN@", "w")
libc = ctypes.CDLL(None, use_errno=True)
bpf = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
attributes = (ctypes.c_uint32 * 30)(2, 4, 8, 1)
print(libc.syscall(bpf, 0, attributes, ctypes.sizeof(attributes)), ctypes.get_errno())
await mcp__desk__look(token="@TOKEN@")
