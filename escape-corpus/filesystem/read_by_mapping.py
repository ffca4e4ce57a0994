# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "map a file of the host into memory"
# evidence = { secret = "canary" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import mmap

with open("@CANARY@", "rb") as file:
    print(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)[:])
