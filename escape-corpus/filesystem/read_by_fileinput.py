# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "let a module of the library read a file of the host"
# evidence = { secret = "canary" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import linecache

print(linecache.getlines("@CANARY@"))
