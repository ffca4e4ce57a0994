# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "load what checks certificates, without any network"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import ssl

context = ssl.create_default_context()
assert context.verify_mode == ssl.CERT_REQUIRED

print("@FORBIDDEN@"[::-1])
