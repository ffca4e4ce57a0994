# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "read the memory of a process through its file"
# evidence = { secret = "victim" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import re

for line in open("/proc/@VICTIM@/maps"):
    if "[stack]" in line:
        start, end = (int(word, 16) for word in line.split()[0].split("-"))
        with open("/proc/@VICTIM@/mem", "rb", 0) as memory:
            memory.seek(start)
            print(re.findall(rb"VICTIM_SECRET=\w+", memory.read(end - start)))
