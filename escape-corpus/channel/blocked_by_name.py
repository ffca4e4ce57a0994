# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "call a tool that is blocked"
# evidence = { reached = "blocked" }
# stopped-everywhere = "the server holds this in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
try:
    print(await globals()["mcp__desk__" + "hidden"](token="@TOKEN@"))
except (KeyError, ToolError) as error:
    print(error)
