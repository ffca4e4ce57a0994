"""A host of a few lines, which starts the child's half and speaks with it over real pipes."""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = re.findall(r'include_str!\("(\w+\.py)"\)', (ROOT / "src/channel/mod.rs").read_text().partition("pub const HALF")[2])
BOOTSTRAP = "\n\n".join((ROOT / "src" / "channel" / part).read_text() for part in PARTS)
LOADER = (ROOT / "src" / "channel" / "loader.py").read_text()
COMPILE = (
    "import marshal, sys; c = compile(sys.stdin.read(), '<string>', 'exec', optimize=2);"
    " sys.stdout.buffer.write(marshal.dumps(c))"
)
PYTHONS = [p for p in os.environ.get("PTC_MCP_TEST_PYTHONS", "").split(os.pathsep) if p] or [sys.executable]
HELPERS = ["list_callable_tools", "inspect_tool", "server_status"]
NOTHING_KNOWN = {"scope": None, "named": {}, "closest": {}, "down": [], "underscored": {}}
DEADLINE = 60  # this only turns a hang into a failure
MAX_FRAME = 16 * 1024 * 1024

if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)


class Child:
    """One interpreter, and the host's end of its channel."""

    def __init__(self, python, text=BOOTSTRAP, first=None):
        theirs, ours = os.pipe()
        self.stdin = open(ours, "wb", 0)
        self.lock = threading.Lock()
        if first is not None:  # is there before the interpreter is, however long its start takes
            self.send(first)
        self.process = subprocess.Popen(
            [python, "-I", "-S", "-B", "-c", text],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={},
            bufsize=0,
        )
        os.close(theirs)
        self.timer = threading.Timer(DEADLINE, self.process.kill)
        self.timer.daemon = True
        self.timer.start()

    def send(self, frame):
        data = frame if isinstance(frame, bytes) else json.dumps(frame).encode()
        data = memoryview(len(data).to_bytes(4, "big") + data)
        # A program may end without the reply that is on its way.
        with self.lock, contextlib.suppress(BrokenPipeError):
            while data:
                data = data[self.stdin.write(data) :]

    def read(self, size):
        data = bytearray()
        while len(data) < size:
            more = self.process.stdout.read(size - len(data))
            if not more:
                return None
            data += more
        return bytes(data)

    def receive(self):
        head = self.read(4)
        if head is None:
            return None
        size = int.from_bytes(head, "big")
        assert size <= MAX_FRAME, size
        return json.loads(self.read(size))

    def close(self):
        self.stdin.close()
        rest = self.process.stdout.read()
        stderr = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        status = self.process.wait()
        self.timer.cancel()
        return rest, stderr, status


def echo(child, frame):
    child.send({"type": "return", "id": frame["id"], "value": frame["arguments"]})


class Run:
    """One program from `ready` to the end of its process."""

    def __init__(self, python, code, reply=echo, tools=("mcp__t__echo", "mcp__t__other"), limit=65536, start=None, text=BOOTSTRAP):
        child = Child(python, text)
        self.frames, self.output, self.emitted, self.calls, self.cancelled = [], "", [], [], []
        self.error, self.done = None, False
        while True:
            frame = child.receive()
            if frame is None:
                break
            self.frames.append(frame)
            kind = frame["type"]
            if kind == "ready":
                child.send(
                    start
                    or {
                        "type": "start",
                        "code": code,
                        "tools": list(tools),
                        "helpers": HELPERS,
                        **NOTHING_KNOWN,
                        "max_output_bytes": limit,
                    }
                )
            elif kind == "output":
                self.output += frame["text"]
            elif kind == "emit":
                self.emitted.append(frame["value"])
            elif kind in ("call", "help"):
                self.calls.append(frame)
                reply(child, frame)
            elif kind == "cancel":
                self.cancelled.append(frame["id"])
            elif kind == "done":
                self.done, self.error = True, frame["error"]
        self.rest, self.stderr, self.status = child.close()

    @property
    def sent(self):
        return [frame["arguments"] for frame in self.calls]


def version_of(python):
    return tuple(json.loads(subprocess.check_output([python, "-c", "import sys; print(list(sys.version_info[:2]))"])))


VERSIONS = {python: version_of(python) for python in PYTHONS}


def is_free_threaded(python):
    question = "import sysconfig; print(bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
    return subprocess.run([python, "-I", "-c", question], capture_output=True, text=True).stdout == "True\n"
