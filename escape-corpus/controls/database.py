# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "keep a database in the scratch directory"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import sqlite3

connection = sqlite3.connect("mine.db")
assert connection.execute("pragma journal_mode=wal").fetchone()[0] == "wal"
connection.execute("create table t (x)")
connection.executemany("insert into t values (?)", ((i,) for i in range(1000)))
connection.commit()
assert sqlite3.connect("mine.db").execute("select sum(x) from t").fetchone() == (499500,)

print("@FORBIDDEN@"[::-1])
