# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "lift the limit of its own half on what it prints"
# evidence = { bound = "output" }
# stopped-everywhere = "the server holds this in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import sys

frame = sys._getframe()
while frame:
    if "_Outgoing" in frame.f_globals:
        frame.f_globals["_Outgoing"].room = 1 << 40
    frame = frame.f_back
print("x" * 50_000_000)
