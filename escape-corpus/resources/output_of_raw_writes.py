# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "keep the server busy with output that is none"
# evidence = { bound = "time" }
# stopped-everywhere = "this limit holds in every mode (contract B6)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import os

while True:
    os.write(1, bytes(1 << 16))
    os.write(2, bytes(1 << 16))
