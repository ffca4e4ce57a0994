# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "leave a key in the kernel's keyring"
# evidence = { change = "keys" }
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

libc = ctypes.CDLL(None)
add_key, keyctl = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
key = libc.syscall(add_key, b"user", b"@TOKEN@", b"x", 1, -4)
SET_TIMEOUT = 15
libc.syscall(keyctl, SET_TIMEOUT, key, 30)
