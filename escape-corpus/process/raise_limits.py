# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "raise its own limits"
# evidence = { state = "limits" }
# needs = ["linux", "cap_sys_resource"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes
import os

marker = open("@TOKEN@", "w")
libc = ctypes.CDLL(None, use_errno=True)
await mcp__desk__look(token="@TOKEN@")
import resource

for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE, resource.RLIMIT_CPU):
    _, most = resource.getrlimit(limit)
    if most != resource.RLIM_INFINITY:
        try:
            resource.setrlimit(limit, (most * 2, most * 2))
        except (OSError, ValueError) as error:
            print(error)
await mcp__desk__look(token="@TOKEN@")
