# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "count as successful although the interpreter crashed"
# evidence = { answered = "success" }
# stopped-everywhere = "the server holds this in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import ctypes

ctypes.string_at(0)
