"""Run outside the sandbox, once: what does this interpreter need to run everything it has?"""
import importlib.machinery
import importlib.util
import json
import os
import sys
import warnings

warnings.simplefilter("ignore")

# These drag in half a desktop, or are the interpreter's own tests.
LEFT_OUT = {"_tkinter", "_testcapi", "_testinternalcapi", "_testbuffer", "_testimportmultiple"}
SUFFIXES = tuple(importlib.machinery.EXTENSION_SUFFIXES)


def extensions():
    for folder in sys.path:
        try:
            files = os.listdir(folder)
        except OSError:
            continue
        for file in files:
            if file.endswith(SUFFIXES):
                name = file.split(".")[0]
                if name not in LEFT_OUT and not name.startswith(("_test", "_ctypes_test", "xx", "_xx")):
                    yield name


def loaded():
    """The names by which the loader opened what is loaded now."""
    names = set()
    try:
        import ctypes
    except ImportError:
        pass
    else:
        class Info(ctypes.Structure):
            _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Info), ctypes.c_size_t, ctypes.c_void_p)
        def note(info, size, data):
            names.add(os.fsdecode(info.contents.name or b""))
            return 0

        ctypes.CDLL(None).dl_iterate_phdr(note, None)
    # Also by what was mapped, for a build without ctypes.
    with open("/proc/self/maps", "rb") as maps:
        for line in maps:
            fields = line.rstrip(b"\n").split(None, 5)
            if len(fields) == 6 and b"x" in fields[1] and fields[5].startswith(b"/"):
                names.add(os.fsdecode(fields[5]))
    return sorted(name for name in names if name.startswith("/"))


modules = []
for name in sorted(set(extensions())):
    try:
        __import__(name)
        modules.append(name)
    except BaseException:
        pass
try:
    from zoneinfo import TZPATH as zones
except ImportError:
    zones = []
try:
    bytecode = importlib.util.cache_from_source(os.__file__)
except (AttributeError, NotImplementedError, TypeError):
    bytecode = None
print(json.dumps({
    "bytecode": bytecode,
    "path": [folder for folder in sys.path if os.path.isabs(folder)],
    "objects": loaded(),
    "zones": list(zones),
    "modules": modules,
}))
