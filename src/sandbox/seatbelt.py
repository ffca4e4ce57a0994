"""Run outside the sandbox, once: what does this interpreter need of macOS to run everything it has?"""
import importlib.machinery
import json
import os
import sys
import warnings

warnings.simplefilter("ignore")

# These drag in a desktop, or are the interpreter's own tests.
LEFT_OUT = {"_tkinter", "_ctypes_test"}
SUFFIXES = tuple(importlib.machinery.EXTENSION_SUFFIXES)


def executable():
    """The program itself: the one in a framework's bin/ only starts another, which is forbidden."""
    if getattr(sys, "_framework", ""):
        inner = os.path.join(sys.base_prefix, "Resources/Python.app/Contents/MacOS/Python")
        if os.path.isfile(inner):
            return os.path.realpath(inner)
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def extensions():
    for folder in sys.path:
        try:
            files = os.listdir(folder)
        except OSError:
            continue
        for file in files:
            name = file.split(".")[0]
            if file.endswith(SUFFIXES) and name not in LEFT_OUT and not name.startswith(("_test", "xx", "_xx")):
                yield name


def images():
    """What the loader has loaded now, by the names it was asked for."""
    try:
        import ctypes

        loader = ctypes.CDLL(None)
        count, name = loader._dyld_image_count, loader._dyld_get_image_name
    except (ImportError, OSError, AttributeError):
        return []
    name.restype = ctypes.c_char_p
    return sorted({os.fsdecode(name(number) or b"") for number in range(count())} - {""})


modules = []
for module in sorted(set(extensions())):
    try:
        __import__(module)
        modules.append(module)
    except BaseException:
        pass
try:
    from zoneinfo import TZPATH as zones
except ImportError:
    zones = []
print(json.dumps({
    "executable": executable(),
    "path": [entry for entry in sys.path if os.path.isabs(entry)],
    "images": images(),
    "zones": list(zones),
    "modules": modules,
}))
