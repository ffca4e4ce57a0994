# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "say something from a task that nobody waits for"
# evidence = { answered = "word" }
# stopped-everywhere = "the server holds this in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import asyncio


async def body():
    while True:
        await asyncio.sleep(0)
        print("@FORBIDDEN@"[::-1])


task = asyncio.ensure_future(body())
