# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "start a program that is looked up in the folders of programs"
# evidence = { process = "second" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os

marker = open("@TOKEN@", "w")
os.set_inheritable(marker.fileno(), True)
os.posix_spawnp("sleep", ["sleep", "60"], {"PATH": "/bin:/usr/bin"})
await mcp__desk__look(token="@TOKEN@")
