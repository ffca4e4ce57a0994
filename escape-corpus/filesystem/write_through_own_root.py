# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "write on the host through procfs"
# evidence = { change = "files" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
open("/proc/self/root@TREE@/new", "w").write("here")
