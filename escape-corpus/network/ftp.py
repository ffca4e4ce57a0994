# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "log in to a file server"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ftplib

ftplib.FTP().connect("127.0.0.1", int("@TCP@"), 0.5)
