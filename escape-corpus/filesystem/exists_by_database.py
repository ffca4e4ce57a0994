# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "learn whether a file exists, by opening it as a database"
# evidence = { difference = "file" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import sqlite3

try:
    print(sqlite3.connect("file:@PROBE@?mode=ro", uri=True).execute("pragma schema_version").fetchall())
except sqlite3.Error as error:
    print(error)
