# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "have a temporary file made on the host"
# evidence = { change = "files" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import tempfile

tempfile.NamedTemporaryFile(dir="@TREE@", delete=False)
