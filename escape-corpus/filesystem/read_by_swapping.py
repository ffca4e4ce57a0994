# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "swap a folder against a link to the host while it is being opened"
# evidence = { secret = "canary" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import os
import threading

os.mkdir("mine")
open("mine/secret.txt", "w").close()
os.symlink("@TREE@", "theirs")
over = False


def swap():
    while not over:
        for pair in (("mine", "hidden"), ("theirs", "mine"), ("mine", "theirs"), ("hidden", "mine")):
            os.rename(*pair)


thread = threading.Thread(target=swap)
thread.start()
for _ in range(20000):
    try:
        text = open("mine/secret.txt").read()
    except OSError:
        continue
    if text:
        print(text)
        break
over = True
thread.join()
