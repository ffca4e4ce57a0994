# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "find the server's variables in its own environment"
# evidence = { secret = "environment" }
# stopped-everywhere = "the child's environment is empty in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import os

print(os.environ, os.environb)
