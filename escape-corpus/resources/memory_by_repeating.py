# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use all memory of the host with one text"
# evidence = { bound = "memory" }
# stopped-everywhere = "this limit holds in every mode (contract B6)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
text = "x"
while True:
    text += text
