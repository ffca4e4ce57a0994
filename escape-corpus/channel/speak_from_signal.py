# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "say something from a signal that comes after its end"
# evidence = { answered = "word" }
# stopped-everywhere = "the server holds this in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import signal

signal.signal(signal.SIGALRM, lambda *_: print("@FORBIDDEN@"[::-1]))
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.001)
