# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "attach a database on the host to one in the scratch directory"
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
connection.execute("attach '@TREE@/other.db' as other")
connection.execute("create table other.t (x)")
