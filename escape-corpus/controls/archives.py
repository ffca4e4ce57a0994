# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "pack and unpack archives"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib

for module in (bz2, gzip, lzma, zlib):
    assert module.decompress(module.compress(b"x" * 1000)) == b"x" * 1000
with zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("x.txt", "x")
with tarfile.open("a.tar.gz", "w:gz") as archive:
    archive.add("a.zip")
zipfile.ZipFile("a.zip").extractall("out")
tarfile.open("a.tar.gz").extractall("out")
assert open("out/x.txt").read() == "x"

print("@FORBIDDEN@"[::-1])
