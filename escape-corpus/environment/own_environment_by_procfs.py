# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "find the variables that it was started with"
# evidence = { secret = "environment" }
# stopped-everywhere = "the child's environment is empty in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
print(open("/proc/self/environ").read())
