# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "become the interpreter by a descriptor in the range that a launcher would use"
# evidence = { process = "image" }
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
import resource
import sys

PAYLOAD = """
import json, os
call = {"type": "call", "id": 777, "tool": "mcp__desk__look", "arguments": {"token": "@TOKEN@"}}
body = json.dumps(call).encode()
os.write(4, len(body).to_bytes(4, "big") + body)
os.read(3, 100)
"""
marker = open("@TOKEN@", "w")
for fd in (3, 4, marker.fileno()):
    os.set_inheritable(fd, True)
libc = ctypes.CDLL(None)
execveat = {"x86_64": 322, "aarch64": 281}[os.uname().machine]
words = [sys.executable.encode(), b"-I", b"-S", b"-c", PAYLOAD.encode(), b"@IMAGE@", None]
arguments, environment = (ctypes.c_char_p * 7)(*words), (ctypes.c_char_p * 1)(None)
source = os.open(sys.executable, os.O_PATH)
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
for number in (source, most - 1, most, 128, 200, 255, 256, 257, 512, 999, 1000, 1001, 1023, 1024):
    try:
        os.dup2(source, number, inheritable=False)
    except OSError:
        pass
    libc.syscall(execveat, number, b"", arguments, environment, 0x1000)
