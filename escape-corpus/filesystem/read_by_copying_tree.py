# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "copy a whole folder of the host into the scratch directory"
# evidence = { secret = "canary" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import shutil

shutil.copytree("@TREE@", "copy", symlinks=True)
print(open("copy/secret.txt").read())
