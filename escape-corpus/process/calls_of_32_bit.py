# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make a folder on the host by the calls of 32-bit programs"
# evidence = { change = "files" }
# needs = ["linux", "x86_64"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes
import mmap

flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_size_t
# Below 4 GiB, where such a call can point at it.
low = libc.mmap(None, ctypes.c_size_t(4096), 3, flags | 0x40, -1, ctypes.c_long(0))
path = b"@TREE@/new\0"
ctypes.memmove(low, path, len(path))
# mov eax, 39 (mkdir); mov ebx, path; mov ecx, 0o777; int 0x80; with rbx, a callee's register, kept
code = b"\x53\xb8\x27\0\0\0\xbb" + low.to_bytes(4, "little") + b"\xb9\xff\x01\0\0\xcd\x80\x5b\xc3"
page = mmap.mmap(-1, 4096, flags=flags, prot=7)
page.write(code)
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
