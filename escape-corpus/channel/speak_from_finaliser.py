# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "say something from a finaliser"
# evidence = { answered = "word" }
# stopped-everywhere = "the server holds this in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
class Left:
    def __del__(self):
        print("@FORBIDDEN@"[::-1])


left = Left()
left.itself = left
