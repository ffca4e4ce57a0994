# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "compute in another process"
# evidence = { process = "second" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import multiprocessing
import time

marker = open("@TOKEN@", "w")
multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,), daemon=True).start()
await mcp__desk__look(token="@TOKEN@")
