# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "connect with asyncio"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import asyncio

await asyncio.wait_for(asyncio.open_connection("127.0.0.1", int("@TCP@")), 5)
