# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "tell and wait for the time"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import signal
import time

before = time.monotonic()
time.sleep(0.01)
assert time.monotonic() > before and time.time() > 1e9 and time.perf_counter() and time.process_time() >= 0
rang = []
signal.signal(signal.SIGALRM, lambda *_: rang.append(True))
signal.setitimer(signal.ITIMER_REAL, 0.01)
while not rang:
    time.sleep(0.01)

print("@FORBIDDEN@"[::-1])
