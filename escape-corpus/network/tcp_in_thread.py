# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "connect from another thread"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import asyncio
import socket

await asyncio.to_thread(socket.create_connection, ("127.0.0.1", int("@TCP@")), 2) if hasattr(
    asyncio, "to_thread"
) else None
