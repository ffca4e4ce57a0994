# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "run machine code out of the scratch directory"
# evidence = { state = "maps/executable" }
# needs = ["linux"]
# gap = "without a mount of its own the scratch directory cannot be made unexecutable"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "escapes"
# seatbelt = "contained"
# none = "escapes"
# ///
import mmap

marker = open("@TOKEN@", "w+b")
marker.write(b"\xc3" * 4096)
marker.flush()
await mcp__desk__look(token="@TOKEN@")
code = mmap.mmap(marker.fileno(), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
await mcp__desk__look(token="@TOKEN@")
