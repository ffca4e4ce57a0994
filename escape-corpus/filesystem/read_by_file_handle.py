# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "open a file by its handle, which needs no path"
# evidence = { secret = "canary" }
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

libc = ctypes.CDLL(None, use_errno=True)
handle = (ctypes.c_uint32 * 34)(128, 0)
mount = ctypes.c_int()
if libc.name_to_handle_at(-100, b"@CANARY@", handle, ctypes.byref(mount), 0) == 0:
    fd = libc.open_by_handle_at(os.open("@TREE@", os.O_RDONLY), handle, os.O_RDONLY)
    print(os.read(fd, 100))
