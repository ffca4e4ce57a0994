# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "crash the interpreter by recursing without a limit"
# evidence = { bound = "time" }
# stopped-everywhere = "this limit holds in every mode (contract B6)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import sys

sys.setrecursionlimit(1 << 30)


def deeper():
    return deeper()


deeper()
