# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "show where something went wrong"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import logging
import traceback
import warnings

warnings.warn("told")
logging.warning("told")
try:
    [][0]
except IndexError:
    assert "IndexError" in traceback.format_exc()

print("@FORBIDDEN@"[::-1])
