# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "say something from a hook of the interpreter's end"
# evidence = { answered = "word" }
# stopped-everywhere = "the server holds this in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import atexit
import threading

atexit.register(lambda: print("@FORBIDDEN@"[::-1]))
threading._register_atexit(print, "@FORBIDDEN@"[::-1]) if hasattr(threading, "_register_atexit") else None
