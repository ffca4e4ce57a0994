# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "reopen a file that another process has open"
# evidence = { secret = "canary" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
print(open("/proc/@VICTIM@/fd/0").read())
