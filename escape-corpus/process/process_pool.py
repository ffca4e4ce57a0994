# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "compute in a pool of processes"
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
from concurrent.futures import ProcessPoolExecutor

marker = open("@TOKEN@", "w")
pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork"))
pool.submit(time.sleep, 60)
await mcp__desk__look(token="@TOKEN@")
