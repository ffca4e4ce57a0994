# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "write one level above the scratch directory"
# evidence = { change = "files" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
open("../@TOKEN@", "w").write("here")
