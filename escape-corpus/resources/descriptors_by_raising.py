# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use up the descriptors of the host after raising the limit"
# evidence = { bound = "descriptors" }
# needs = ["linux", "cap_sys_resource"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os
import resource

marker = open("@TOKEN@", "w")
for value in (1 << 20, 100000, 1024):
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (value, value))
    except (OSError, ValueError) as error:
        print(error)
kept = []
try:
    while len(kept) < 1000:
        kept += os.pipe()
except OSError as error:
    print(error)
await mcp__desk__look(token="@TOKEN@")
