# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "import every module of the standard library that this interpreter has"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import importlib
import sys
import warnings

warnings.simplefilter("ignore")
# Parts that open a window, a browser or a terminal when they are imported, and what needs a
# library of the host beyond the interpreter's own.
LEFT_OUT = {"antigravity", "this", "idlelib", "tkinter", "turtle", "turtledemo", "_tkinter", "test", "ensurepip"}
# Of other systems, or left out by whoever built this interpreter.
ELSEWHERE = (
    "_msi _overlapped _scproxy _winapi _winreg asyncio.windows_events msilib msvcrt nt winreg winsound _wmi"
    " _android_support _apple_support _ios_support _osx_support vms_lib"
).split()
OPTIONAL = "_bz2 _curses _curses_panel _dbm _gdbm _lzma _tkinter nis ossaudiodev spwd crypt _crypt _uuid _sqlite3 readline"
OPTIONAL = set(OPTIONAL.split()) | set("curses dbm.gnu dbm.ndbm lib2to3 distutils _zstd".split())
names = getattr(sys, "stdlib_module_names", None) or sys.builtin_module_names
failed = {}
for name in sorted(set(names) - LEFT_OUT - set(ELSEWHERE)):
    try:
        importlib.import_module(name)
    except ImportError as error:
        if name not in OPTIONAL:
            failed[name] = str(error)
    except Exception as error:
        failed[name] = repr(error)
assert not failed, failed

print("@FORBIDDEN@"[::-1])
