# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make a device node of a disk in the scratch directory"
# evidence = { state = "scratch/devices" }
# needs = ["linux", "root"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os
import stat

marker = open("@TOKEN@", "w")
os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(7, 0))
await mcp__desk__look(token="@TOKEN@")
