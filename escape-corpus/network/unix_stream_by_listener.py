# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "speak to another Python through its own protocol"
# evidence = "contact"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import threading
from multiprocessing.connection import Client

thread = threading.Thread(target=Client, args=("@STREAM@",), daemon=True)
thread.start()
thread.join(1)
