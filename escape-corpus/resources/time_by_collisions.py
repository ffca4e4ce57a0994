# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "run for ever in a table whose keys collide"
# evidence = { bound = "time" }
# stopped-everywhere = "this limit holds in every mode (contract B6)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
table = {}
for number in range(1 << 22):
    table[number * ((1 << 61) - 1)] = None
