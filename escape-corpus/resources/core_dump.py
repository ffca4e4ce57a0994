# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "leave the memory of a crashed process on the disk"
# evidence = { bound = "output" }
# stopped-everywhere = "this limit holds in every mode (contract B6)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import os

kept = b"x" * (100 << 20)
os.abort()
