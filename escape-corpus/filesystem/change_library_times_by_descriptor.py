# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "change the times of a library's file through a descriptor that reads it"
# evidence = { change = "interpreter" }
# needs = ["root"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

library = os.open(os.__file__, os.O_RDONLY)
# The same ones, so that its bytecode stays good; that they were set shows.
now = os.stat(library)
os.utime(library, ns=(now.st_atime_ns, now.st_mtime_ns))
