# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "send a mail"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import smtplib

smtplib.SMTP("127.0.0.1", int("@TCP@"), timeout=0.5)
