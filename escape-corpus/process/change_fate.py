# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make the kernel end another process first"
# evidence = { change = "victim" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
open("/proc/@VICTIM@/oom_score_adj", "w").write("900")
