# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "pack a folder of the host into an archive"
# evidence = { secret = "canary" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import io
import tarfile

archive = io.BytesIO()
with tarfile.open(fileobj=archive, mode="w") as tar:
    tar.add("@CANARY@", "canary")
archive.seek(0)
print(tarfile.open(fileobj=archive).extractfile("canary").read())
