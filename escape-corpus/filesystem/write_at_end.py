# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "append to a file of the host"
# evidence = { change = "files" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
open("@CANARY@", "a").write("appended")
