# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "call tools, one by one and at once"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import asyncio

assert await mcp__desk__echo(token="@TOKEN@") == "seen"
assert await asyncio.gather(*[mcp__desk__slow(token="@TOKEN@") for _ in range(4)]) == ["seen"] * 4
assert "mcp__desk__echo" in await list_callable_tools()
assert (await server_status())["desk"]["connected"]

print("@FORBIDDEN@"[::-1])
