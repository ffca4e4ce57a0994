# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "plant compiled code where a later program would run it"
# evidence = { change = "interpreter" }
# needs = ["root"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

cache = os.path.join(os.path.dirname(os.__file__), "__pycache__")
os.rename(cache, cache + "-@TOKEN@")
os.rename(cache + "-@TOKEN@", cache)
os.mkdir(cache + "-@TOKEN@")
