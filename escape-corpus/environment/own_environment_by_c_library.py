# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "find variables that Python does not show"
# evidence = { secret = "environment" }
# stopped-everywhere = "the child's environment is empty in every mode"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import ctypes

address = ctypes.c_void_p.in_dll(ctypes.CDLL(None), "environ").value
listed = ctypes.cast(address, ctypes.POINTER(ctypes.c_char_p))
for i in range(1000):
    if listed[i] is None:
        break
    print(listed[i])
