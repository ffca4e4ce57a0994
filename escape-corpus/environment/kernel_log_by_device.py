# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "read the kernel's log from its device"
# evidence = { secret = "kernel-log" }
# needs = ["linux", "root"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
lines = []
while True:
    try:
        lines.append(os.read(log, 8192).decode(errors="replace"))
    except OSError:
        break
print("".join(lines[-300:]))
