# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "find a descriptor that the server left open"
# evidence = { object = "foreign" }
# needs = ["linux"]
# stopped-everywhere = "nothing but the channel is inherited in any mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
marker = open("@TOKEN@", "w")
await mcp__desk__look(token="@TOKEN@")
