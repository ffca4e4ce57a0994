# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "keep a database in memory"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import sqlite3

connection = sqlite3.connect(":memory:")
assert connection.execute("select json_extract('[1,2]', '$[1]')").fetchone() == (2,)

print("@FORBIDDEN@"[::-1])
