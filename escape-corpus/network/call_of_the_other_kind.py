# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make a socket by the calls of 32-bit programs, which another table answers"
# evidence = { object = "socket:" }
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

marker = open("@TOKEN@", "w")
# mov eax, 359 (socket); mov ebx, 2; mov ecx, 1; xor edx, edx; int 0x80; with ebx, a callee's register, kept
code = bytes.fromhex("53 b8 67010000 bb 02000000 b9 01000000 31d2 cd80 5b c3".replace(" ", ""))
page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
page.write(code)
print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))())
await mcp__desk__look(token="@TOKEN@")
