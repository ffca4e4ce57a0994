# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "read the kernel's log"
# evidence = { secret = "kernel-log" }
# needs = ["linux", "root"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes

text = ctypes.create_string_buffer(1 << 18)
print(ctypes.CDLL(None).klogctl(3, text, len(text)))
print(text.value.decode(errors="replace")[-20000:])
