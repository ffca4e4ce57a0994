# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use most of the scratch directory that it may"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import os

for number in range(10):
    with open(f"part{number}", "wb") as file:
        file.write(os.urandom(1 << 20))
for number in range(500):
    open(f"small{number}", "w").close()

print("@FORBIDDEN@"[::-1])
