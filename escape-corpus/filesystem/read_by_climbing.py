# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "climb out of the scratch directory with dots"
# evidence = { secret = "canary" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
for depth in range(1, 40):
    try:
        print(open("../" * depth + "@CANARY@"[1:]).read())
    except OSError:
        pass
