# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "read a file of the host by climbing from a folder of the library"
# evidence = { secret = "canary" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

library = os.open(os.path.dirname(os.__file__), os.O_RDONLY | os.O_DIRECTORY)
for depth in range(1, 24):
    try:
        print(os.read(os.open("../" * depth + "@CANARY@"[1:], os.O_RDONLY, dir_fd=library), 100))
    except OSError:
        pass
os.fchdir(library)
for _ in range(24):
    os.chdir("..")
print(open("@CANARY@"[1:]).read())
