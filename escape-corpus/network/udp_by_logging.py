# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "let a log handler send a datagram"
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
logging.getLogger().addHandler(logging.handlers.DatagramHandler("127.0.0.1", int("@UDP@")))
logging.error("here")
