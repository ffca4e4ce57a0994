# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "import a module from the server's PYTHONPATH"
# evidence = { secret = "environment" }
# stopped-everywhere = "the interpreter is isolated (-I -S) in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import planted_on_path
