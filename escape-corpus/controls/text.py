# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "work on text"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import csv
import difflib
import html
import io
import json
import re
import string
import textwrap
import unicodedata

rows = list(csv.DictReader(io.StringIO("name,age\nÅsa,41\n")))
assert json.loads(json.dumps(rows, ensure_ascii=False)) == [{"name": "Åsa", "age": "41"}]
assert re.sub(r"(\w)(\d)", r"\2\1", "a1 b2") == "1a 2b"
assert unicodedata.normalize("NFC", "A\u030a") == "Å" and html.unescape("&eacute;") == "é"
assert difflib.get_close_matches("appel", ["ape", "apple"]) and textwrap.fill("x " * 100, 20)

print("@FORBIDDEN@"[::-1])
