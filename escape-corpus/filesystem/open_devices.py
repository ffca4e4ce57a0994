# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "open a device that talks to the kernel or the machine"
# evidence = { object = "device" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

marker = open("@TOKEN@", "w")
kept = []
for name in "kmsg ptmx tty fuse kvm net/tun rtc0 full loop-control vsock console mem port snapshot".split():
    try:
        kept.append(os.open("/dev/" + name, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY))
    except OSError as error:
        print(name, error.errno)
await mcp__desk__look(token="@TOKEN@")
