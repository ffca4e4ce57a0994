# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "have a module run that interpreters import when they start"
# evidence = { secret = "environment" }
# stopped-everywhere = "the interpreter is isolated (-I -S) in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import site
import sys

print(sorted(name for name in sys.modules if "customize" in name))
site.execsitecustomize()
site.execusercustomize()
