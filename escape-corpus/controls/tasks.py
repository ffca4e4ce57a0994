# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use an event loop"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import asyncio


async def body(delay):
    await asyncio.sleep(delay)
    return delay


assert await asyncio.gather(body(0.01), body(0.02)) == [0.01, 0.02]
assert await asyncio.get_running_loop().run_in_executor(None, sum, [1, 2]) == 3
try:
    await asyncio.wait_for(asyncio.sleep(60), 0.01)
    raise AssertionError
except asyncio.TimeoutError:
    pass

print("@FORBIDDEN@"[::-1])
