# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a folder exists, by putting it on the path of modules"
# evidence = { difference = "folder" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import sys

sys.path.insert(0, "@PROBE@")
try:
    import nothing_of_that_name
except ImportError:
    pass
finder = sys.path_importer_cache["@PROBE@"]
print(finder._path_mtime if hasattr(finder, "_path_mtime") else finder)
