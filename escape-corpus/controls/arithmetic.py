# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "compute something"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import decimal
import fractions
import math
import statistics

assert statistics.mean([1, 2, 3]) == 2
assert math.isclose(math.fsum([0.1] * 10), 1)
assert decimal.Decimal("1.10") + 1 == decimal.Decimal("2.10")
assert fractions.Fraction(1, 3) * 3 == 1

print("@FORBIDDEN@"[::-1])
