# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn the number of this boot, which all programs of a host share"
# evidence = { secret = "boot-id" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
print(open("/proc/sys/kernel/random/boot_id").read())
