# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "find what the launcher before it had in memory"
# evidence = { secret = "environment" }
# stopped-everywhere = "the launcher has none of the server's variables, and exec replaces its memory"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import re

for line in open("/proc/self/maps"):
    start, end = (int(word, 16) for word in line.split()[0].split("-"))
    if "rw" in line:
        with open("/proc/self/mem", "rb", 0) as memory:
            memory.seek(start)
            print(set(re.findall(rb"ESCAPE_SECRET=\w{8,}", memory.read(end - start))))
