# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use up the descriptors of the host"
# evidence = { bound = "descriptors" }
# needs = ["linux"]
# stopped-everywhere = "this limit holds in every mode (contract B6)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import os

marker = open("@TOKEN@", "w")
kept = []
try:
    while len(kept) < 5000:
        kept += os.pipe()
except OSError as error:
    print(error)
await mcp__desk__look(token="@TOKEN@")
