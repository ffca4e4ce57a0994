# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn the name of the host from files"
# evidence = { secret = "host-name" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
for name in ("/proc/sys/kernel/hostname", "/etc/hostname"):
    try:
        print(open(name).read())
    except OSError as error:
        print(error)
