# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "make a database on the host"
# evidence = { change = "files" }
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "contained"
# chroot = "contained"
# seatbelt = "contained"
# none = "escapes"
# ///
import sqlite3

connection = sqlite3.connect("@TREE@/new.db")
connection.execute("create table t (x)")
connection.commit()
