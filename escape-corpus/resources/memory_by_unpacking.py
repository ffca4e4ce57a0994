# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use all memory of the host by unpacking a small archive"
# evidence = { bound = "memory" }
# stopped-everywhere = "this limit holds in every mode (contract B6)"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "contained"
# ///
import zlib

small = zlib.compress(bytes(64 << 20), 1)
kept = [bytearray(zlib.decompress(small)) for _ in range(16)]
