# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "change a file of the host by a shared mapping"
# evidence = { change = "files" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import mmap

with open("@CANARY@", "r+b") as file:
    mmap.mmap(file.fileno(), 0)[:4] = b"gone"
