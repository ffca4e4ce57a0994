# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn which interfaces the host has from procfs and sysfs"
# evidence = { secret = "interface" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

for read in (
    lambda: [line.split(":")[0] for line in open("/proc/net/dev")],
    lambda: os.listdir("/sys/class/net"),
):
    try:
        print(*read(), sep="\n")
    except OSError as error:
        print(error)
