# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "list a folder of the host with the C library"
# evidence = { secret = "name" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes

libc = ctypes.CDLL(None)
names = ctypes.POINTER(ctypes.c_void_p)()
count = libc.scandir(b"@TREE@/folder", ctypes.byref(names), None, None)
for i in range(count):
    print(ctypes.string_at(names[i], 80))
