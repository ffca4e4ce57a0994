# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "have SQLite write a copy of a database on the host"
# evidence = { change = "files" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import sqlite3

connection = sqlite3.connect("mine.db", isolation_level=None)
connection.execute("create table t (x)")
connection.execute("vacuum into '@TREE@/copy.db'")
