# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn the names of the folders above by climbing"
# evidence = { secret = "working-directory" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

here = "."
for _ in range(12):
    try:
        below, above = os.stat(here), here + "/.."
        for entry in os.scandir(above):
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # another program's, which has just ended
                continue
            if (found.st_dev, found.st_ino) == (below.st_dev, below.st_ino):
                print(entry.name)
        here = above
    except OSError as error:
        print(error)
        break
