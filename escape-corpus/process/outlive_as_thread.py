# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "leave a thread behind that keeps the process alive"
# evidence = { process = "survivor" }
# needs = ["linux"]
# stopped-everywhere = "the program's own process ends with its program in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import threading
import time

marker = open("@TOKEN@", "w")
threading.Thread(target=time.sleep, args=(60,)).start()
