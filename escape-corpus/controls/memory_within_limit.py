# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use most of the memory that it may"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
kept = [bytearray(16 << 20) for _ in range(8)]
for piece in kept:
    piece[::4096] = b"x" * len(range(0, len(piece), 4096))

print("@FORBIDDEN@"[::-1])
