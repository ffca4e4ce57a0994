# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "have more told than it may in the record of its calls"
# evidence = { bound = "output" }
# stopped-everywhere = "the server holds this in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
for _ in range(10):
    try:
        await mcp__desk__echo(token="@TOKEN@", text="x" * 1000000)
    except ToolError:
        pass
