"""Executes a command as container engines do by default: no namespaces, no mounts, no keyrings."""
import ctypes
import os
import struct
import sys

REFUSED = (
    165, 166, 272, 308, 155, 428, 429, 430, 431, 432, 442,  # mounts and namespaces
    250, 248, 249, 321, 298, 323, 310, 311, 246, 175, 313, 169,  # keys, bpf, perf, memory, kernel
)
LOAD, EQUAL, AND, RETURN = 0x20, 0x15, 0x54, 0x06
ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x50001, 0x50026

program = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, 0xC000003E), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
program += [(EQUAL, 0, 1, 435), (RETURN, 0, 0, ENOSYS)]  # clone3
for number in REFUSED:
    program += [(EQUAL, 0, 1, number), (RETURN, 0, 0, EPERM)]
program += [  # clone, with a flag that makes a namespace
    (EQUAL, 0, 4, 56),
    (LOAD, 0, 0, 16),
    (AND, 0, 0, 0x7E020000),
    (EQUAL, 1, 0, 0),
    (RETURN, 0, 0, EPERM),
    (RETURN, 0, 0, ALLOW),
]


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(program), ctypes.addressof(text))), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
