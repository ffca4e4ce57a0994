# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "judge its own calls instead of the kernel"
# evidence = { object = "anon_inode:seccomp" }
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

marker = open("@TOKEN@", "w")
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
allow = (ctypes.c_uint16 * 4)(6, 0, 0, 0x7FFF)
program = (ctypes.c_size_t * 2)(1, ctypes.addressof(allow))
libc.prctl(38, 1, 0, 0, 0)
print(libc.syscall(number, 1, 8, program), ctypes.get_errno())
await mcp__desk__look(token="@TOKEN@")
