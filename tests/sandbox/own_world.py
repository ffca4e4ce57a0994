import os
import sys

found = {
    "working directory": os.getcwd(),
    "files in it": os.listdir(),
    "environment": {key: value for key, value in os.environ.items() if key != "LC_CTYPE"},
    "host name": os.uname().nodename,
    "user": (os.getuid(), os.geteuid(), os.getgid(), os.getegid()),
    "process": (os.getpid(), os.getppid()),
    "root": sorted(name for name in ("etc", "home", "root", "tmp", "var", "sys", "run", "opt")
                   if os.path.lexists("/" + name) and not sys.prefix.startswith("/" + name)),
    "process list": os.path.lexists("/proc/1"),
    "descriptors": [number for number in range(5, 256) if os.path.lexists(f"/dev/fd/{number}")],
}
expected = {
    "working directory": "/scratch",
    "files in it": [],
    "environment": {"HOME": "/scratch", "TMPDIR": "/scratch"},
    "host name": "sandbox",
    "user": (65534,) * 4,
    "process": (1, 0),
    "root": [],
    "process list": False,
    "descriptors": [],
}
different = {key: value for key, value in found.items() if value != expected[key]}
print(different or "all as it should be")
