# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "do input and output without the calls that are watched"
# evidence = { object = "anon_inode:[io_uring]" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import ctypes

marker = open("@TOKEN@", "w")
ctypes.CDLL(None).syscall(425, 4, ctypes.create_string_buffer(120))
await mcp__desk__look(token="@TOKEN@")
