# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "build a function for a tool that is blocked"
# evidence = { reached = "blocked" }
# stopped-everywhere = "the server holds this in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
Function = type(mcp__desk__echo)
try:
    print(await Function("mcp__desk__hidden")(token="@TOKEN@"))
except ToolError as error:
    print(error)
