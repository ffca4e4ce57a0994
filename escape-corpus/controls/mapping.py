# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "map a file of its own into memory"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import mmap

with open("mine", "w+b") as file:
    file.truncate(8192)
    with mmap.mmap(file.fileno(), 0) as memory:
        memory[0:4] = b"here"
assert open("mine", "rb").read(4) == b"here"

print("@FORBIDDEN@"[::-1])
