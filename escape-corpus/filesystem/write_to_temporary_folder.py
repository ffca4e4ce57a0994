# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "write into the folders that every process shares"
# evidence = { change = "files" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
for folder in ("/tmp", "/var/tmp"):
    try:
        open(f"{folder}/@TOKEN@", "w").write("here")
    except OSError as error:
        print(error)
