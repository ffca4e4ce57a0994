# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "work on files in the scratch directory"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import os
import pathlib
import shutil
import tempfile

folder = pathlib.Path("a/b")
folder.mkdir(parents=True)
(folder / "größe.txt").write_text("Ω\n", encoding="utf-8")
(folder / "größe.txt").rename(folder / "neu.txt")
os.symlink("neu.txt", folder / "link")
os.chmod(folder / "neu.txt", 0o600)
os.utime(folder / "neu.txt", (1, 1))
assert (folder / "link").read_text(encoding="utf-8") == "Ω\n"
assert [path.name for path in sorted(folder.iterdir())] == ["link", "neu.txt"]
shutil.copytree("a", "copy", symlinks=True)
shutil.rmtree("a")
assert os.path.realpath(".") == os.path.realpath(os.getcwd())
with tempfile.NamedTemporaryFile("w+") as file, tempfile.TemporaryDirectory() as other:
    file.write("x")
    assert os.path.isdir(other) and os.path.exists(file.name)
with tempfile.TemporaryFile() as unnamed:
    unnamed.write(b"x")
assert os.path.expanduser("~") == os.environ["HOME"]

print("@FORBIDDEN@"[::-1])
