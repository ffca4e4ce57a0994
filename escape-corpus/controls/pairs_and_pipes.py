# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "connect two parts of itself"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import os
import selectors
import socket

ours, theirs = socket.socketpair()
ours.sendall(b"x")
assert theirs.recv(1) == b"x"
ready, tell = os.pipe()
selector = selectors.DefaultSelector()
selector.register(ready, selectors.EVENT_READ)
os.write(tell, b"x")
assert selector.select(5) and os.read(ready, 1) == b"x"

print("@FORBIDDEN@"[::-1])
