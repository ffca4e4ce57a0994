# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "unpack an archive whose entry climbs out"
# evidence = { change = "files" }
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
    entry = tarfile.TarInfo("@TREE@/new"[1:])
    entry.size = 4
    tar.addfile(entry, io.BytesIO(b"here"))
archive.seek(0)
tarfile.open(fileobj=archive).extractall("/")
