# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "let a log handler write to a socket's file"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import logging
import logging.handlers

logging.raiseExceptions = False
logging.getLogger().addHandler(logging.handlers.SysLogHandler("@DATAGRAM@"))
logging.error("here")
