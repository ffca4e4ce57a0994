# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "climb from procfs's link to the working directory"
# evidence = { secret = "canary" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
print(open("/proc/self/cwd/" + "../" * 40 + "@CANARY@"[1:]).read())
