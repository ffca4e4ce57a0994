# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "find the scratch directories of other programs"
# evidence = { secret = "neighbour" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

for folder in (os.path.dirname(os.getcwd()), "@SCRATCH_PARENT@", ".."):
    try:
        print(os.listdir(folder))
    except OSError as error:
        print(error)
