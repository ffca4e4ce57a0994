# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn which users the host has from the C library"
# evidence = { secret = "passwd" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import pwd

for user in pwd.getpwall():
    print(":".join(map(str, user)))
