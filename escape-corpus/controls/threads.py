# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use threads and their locks"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import queue
import threading
from concurrent.futures import ThreadPoolExecutor

with ThreadPoolExecutor(16) as pool:
    assert sum(pool.map(lambda x: x * x, range(1000))) == 332833500
results = queue.Queue()
threads = [threading.Thread(target=results.put, args=(i,)) for i in range(30)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join(10)
assert results.qsize() == 30

print("@FORBIDDEN@"[::-1])
