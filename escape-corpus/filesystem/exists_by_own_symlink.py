# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a link of its own leads somewhere"
# evidence = { difference = "file" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

os.symlink("@PROBE@", "link")
print(os.path.exists("link"), os.path.realpath("link"))
