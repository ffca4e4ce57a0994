# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make more calls than it may, all at once"
# evidence = { reached = "budget" }
# stopped-everywhere = "the server holds this in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import asyncio

calls = [mcp__desk__echo(token="@TOKEN@") for _ in range(40)]
print(await asyncio.gather(*calls, return_exceptions=True))
