# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make more calls than it may"
# evidence = { reached = "budget" }
# stopped-everywhere = "the server holds this in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
for _ in range(40):
    try:
        await mcp__desk__echo(token="@TOKEN@")
    except ToolError as error:
        last = error
print(last)
