# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "work on dates in zones"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import datetime

try:
    import zoneinfo

    zone = zoneinfo.ZoneInfo("Europe/Berlin")
except Exception:  # a host without the data, in or out of the sandbox
    zone = datetime.timezone(datetime.timedelta(hours=1))
moment = datetime.datetime(2024, 1, 1, tzinfo=zone)
assert moment.astimezone(datetime.timezone.utc).hour == 23
assert datetime.date.fromisoformat("2024-02-29").strftime("%A") == "Thursday"

print("@FORBIDDEN@"[::-1])
