# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "leave a program behind"
# evidence = { process = "survivor" }
# needs = ["linux"]
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import subprocess

marker = open("@TOKEN@", "w")
child = subprocess.Popen(
    "echo; sleep 60", shell=True, start_new_session=True, stdout=subprocess.PIPE, pass_fds=[marker.fileno()]
)
child.stdout.read(1)
