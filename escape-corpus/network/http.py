# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "fetch a URL"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import urllib.request

urllib.request.urlopen("http://127.0.0.1:@TCP@/", timeout=0.5)
