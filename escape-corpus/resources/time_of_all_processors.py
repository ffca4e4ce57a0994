# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use every processor from many threads"
# evidence = { bound = "time" }
# stopped-everywhere = "this limit holds in every mode (contract B6)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import hashlib
import threading

for _ in range(8):
    threading.Thread(target=hashlib.pbkdf2_hmac, args=("sha512", b"x", b"x", 1 << 30), daemon=True).start()
hashlib.pbkdf2_hmac("sha512", b"x", b"x", 1 << 30)
