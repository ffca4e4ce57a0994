"""The child's half of the channel against a host of a few lines, over real pipes.

    python3 tests/bootstrap/test_bootstrap.py

runs everything with the running interpreter; PTC_MCP_TEST_PYTHONS names others (paths, separated
by the path separator), each of which then runs everything. Nothing has to be installed.

Most facts are a line of a table: the contract's clause, the program, what must come of it.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOOTSTRAP = "\n\n".join((ROOT / "src" / "channel" / name).read_text() for name in ("check.py", "bootstrap.py"))
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



# clause, program, its output
WORKS = [
    ("P1 top-level await", "print(await mcp__t__echo(a=1))", "{'a': 1}\n"),
    ("P1 without await", "print(1 + 1)", "2\n"),
    ("P1 an empty program", "", ""),
    ("P1 __main__", "import sys\nprint(__name__, sys.modules['__main__'].__dict__ is globals())", "__main__ True\n"),
    ("P1 __main__ guard", "if __name__ == '__main__':\n    print('in')", "in\n"),
    (
        "P1 no names of ours",
        "print(sorted(n for n in globals() if n[:2] != '__' and n[:5] != 'mcp__'))",
        "['emit', 'inspect_tool', 'list_callable_tools', 'server_status']\n",
    ),
    ("P1 from __future__", "from __future__ import annotations\ndef f(x: nowhere): pass\nprint(f.__annotations__)", "{'x': 'nowhere'}\n"),
    ("P1 await in a comprehension", "print([await mcp__t__echo(a=i) for i in range(2)])", "[{'a': 0}, {'a': 1}]\n"),
    ("P1 async for and with", "async def g():\n    yield await mcp__t__echo(a=1)\nasync for x in g():\n    print(x)", "{'a': 1}\n"),
    ("P1 classes pickle", "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)", "True\n"),
    ("P1 standard library", "import csv, sqlite3, datetime, re, statistics\nprint(statistics.mean([1, 3]))", "2\n"),
    ("P2 function name", "f = mcp__t__echo\nprint(f.__name__, f.__qualname__, callable(f))", "mcp__t__echo mcp__t__echo True\n"),
    ("P2 async function", "import inspect\nprint(inspect.iscoroutinefunction(mcp__t__echo), inspect.signature(mcp__t__echo))", "True (**arguments)\n"),
    ("P2 async function, asyncio", "import asyncio, warnings\nwarnings.simplefilter('ignore')\nprint(asyncio.iscoroutinefunction(mcp__t__echo))", "True\n"),
    ("P2 helpers are async functions", "import inspect\nprint(inspect.iscoroutinefunction(server_status))", "True\n"),
    ("P2 tuples are lists", "print(await mcp__t__echo(a=(1, (2,))))", "{'a': [1, [2]]}\n"),
    ("P2 no arguments", "print(await mcp__t__echo())", "{}\n"),
    ("P2 one dict twice is no cycle", "d = {}\nprint(await mcp__t__echo(a=d, b=[d, d]))", "{'a': {}, 'b': [{}, {}]}\n"),
    ("P2 odd text", "print(await mcp__t__echo(a='\\0\"\\\\\\u2028\\U0001f600é'))", "{'a': '\\x00\"\\\\\\u2028\U0001f600é'}\n"),
    ("P2 numbers", "print(await mcp__t__echo(a=1e300, b=-0.0, c=True, d=2**70, e=0.1))", f"{{'a': 1e+300, 'b': -0.0, 'c': True, 'd': {2**70}, 'e': 0.1}}\n"),
    ("P2 enums and subclasses", "import enum\nclass E(enum.IntEnum):\n    A = 3\nclass S(str): pass\nprint(await mcp__t__echo(a=E.A, b=S('x')))", "{'a': 3, 'b': 'x'}\n"),
    ("P3 ToolError is a builtin", "import builtins\nprint(builtins.ToolError is ToolError, issubclass(ToolError, Exception))", "True True\n"),
    ("P5 list", "print(await list_callable_tools(query='x'))", "{'query': 'x'}\n"),
    ("P5 inspect", "print(await inspect_tool(tool_name='x'))", "{'tool_name': 'x'}\n"),
    ("P5 inspect by position", "print(await inspect_tool('x'))", "{'tool_name': 'x'}\n"),
    ("P5 status", "print(await server_status())", "{}\n"),
    ("P6 stderr in order", "import sys\nprint(1)\nprint(2, file=sys.stderr)\nprint(3)", "1\n2\n3\n"),
    ("P6 bytes", "import sys\nsys.stdout.buffer.write('é'.encode()[:1])\nsys.stdout.buffer.write('é'.encode()[1:])\nsys.stdout.buffer.write(b'\\xff.')", "é\ufffd."),
    ("P6 half a character at the end", "import sys\nsys.stdout.buffer.write(b'a\\xc3')", "a\ufffd"),
    ("P6 bytearray and memoryview", "import sys\nprint(sys.stdout.buffer.write(bytearray(b'ab')), sys.stdout.buffer.write(memoryview(b'cd')))", "abcd2 2\n"),
    ("P6 lone surrogates", "print('\\ud800')", "\\ud800\n"),
    ("P6 write returns its length", "import sys\nprint(sys.stdout.write('aé'))", "aé2\n"),
    ("P6 the stream's manners", "import sys\no = sys.stdout\nprint(o.encoding, o.isatty(), o.writable(), o.flush(), o is sys.__stdout__, o.name)", "utf-8 False True None True <stdout>\n"),
    ("P6 no descriptor", "import sys, io\nfor s in (sys.stdin, sys.stdout, sys.stderr):\n    try: s.fileno()\n    except io.UnsupportedOperation: print('no')", "no\nno\nno\n"),
    ("P6 reconfigure", "import sys\nsys.stdout.reconfigure(line_buffering=True, errors='strict')\nprint('x')", "x\n"),
    ("P6 unflushed text", "import sys\nsys.stdout.reconfigure(write_through=False)\nprint('x', end='')", "x"),
    ("P6 writelines", "import sys\nsys.stdout.writelines(['a', 'b\\n'])", "ab\n"),
    ("P6 replaced stdout", "import sys, io\nsys.stdout = io.StringIO()\nprint('lost')\nsys.__stdout__.write('kept')", "kept"),
    ("P6 redirect_stdout", "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as s:\n    print('x')\nprint(repr(s.getvalue()))", "'x\\n'\n"),
    ("P6 logging", "import logging\nlogging.warning('w')\nlogging.getLogger('a').error('e')", "WARNING:root:w\nERROR:a:e\n"),
    ("P6 logging's last resort", "import logging\nlogging.getLogger('a').error('e')", "e\n"),
    ("P6 warnings", "import warnings\nwarnings.warn('w')", "<program>:2: UserWarning: w\n  warnings.warn('w')\n"),
    ("P6 traceback.print_exc", "import traceback\ntry:\n    1/0\nexcept Exception:\n    print(traceback.format_exc().splitlines()[:3])", "['Traceback (most recent call last):', '  File \"<program>\", line 3, in <module>', '    1/0']\n"),
    ("P6 input is empty", "try:\n    input('? ')\nexcept EOFError:\n    print('eof')", "? eof\n"),
    ("P6 stdin is empty", "import sys\nprint(repr(sys.stdin.read()))", "''\n"),
    ("P7 exit", "import sys\nprint(1)\nsys.exit()", "1\n"),
    ("P7 exit 0", "import sys\nsys.exit(0)", ""),
    ("P7 exit in the loop", "import asyncio, sys\nawait asyncio.sleep(0)\nsys.exit(0)", ""),
    ("P7 exit() without site", "print(1)\nexit()", "1\n"),
    ("P9 raw writes", "import os\nfor fd in (0, 1, 2):\n    try: os.write(fd, b'\\0\\0\\0\\2{}')\n    except OSError: pass\nprint('p')", "p\n"),
    ("P9 atexit", "import atexit\natexit.register(print, 'late')\nprint('p')", "p\n"),
    ("P9 finalisers", "class A:\n    def __del__(self): print('late')\na = A()\nb = [a]\nb.append(b)", ""),
    ("P9 threads do not delay", "import threading, time\nthreading.Thread(target=time.sleep, args=(3600,)).start()\nprint('p')", "p\n"),
    ("P9 tasks do not delay", "import asyncio\nasync def f():\n    try: await asyncio.sleep(3600)\n    finally: print('late')\nt = asyncio.create_task(f())\nawait asyncio.sleep(0)\nprint('p')", "p\n"),
    ("P9 tasks get no turn after the end", "import asyncio\nasync def f():\n    while True:\n        await asyncio.sleep(0)\n        if ended: time.sleep(3600)\nimport time\nended = False\nt = asyncio.create_task(f())\nawait asyncio.sleep(0)\nended = True\nprint('p')", "p\n"),
    ("P11 asyncio.run", "import asyncio\nasync def main():\n    print(await mcp__t__echo(a=1))\nasyncio.run(main())", "{'a': 1}\n"),
    ("P11 asyncio.run beside top-level await", "import asyncio\nasync def main():\n    return await mcp__t__echo(a=1)\nprint(await mcp__t__echo(a=0))\nprint(asyncio.run(main()))\nprint(await mcp__t__echo(a=2))", "{'a': 0}\n{'a': 1}\n{'a': 2}\n"),
    ("P11 asyncio.run, imported by name", "from asyncio import run\nasync def main():\n    return await mcp__t__echo(a=1)\nawait mcp__t__echo()\nprint(run(main()))", "{'a': 1}\n"),
    ("P11 asyncio.run twice", "import asyncio\nasync def main(): return await mcp__t__echo(a=1)\nprint(asyncio.run(main()), asyncio.run(main()))", "{'a': 1} {'a': 1}\n"),
    ("P11 run_until_complete", "import asyncio\nasync def main(): return await mcp__t__echo(a=1)\nprint(asyncio.get_event_loop().run_until_complete(main()))", "{'a': 1}\n"),
    ("P11 run_until_complete beside top-level await", "import asyncio\nasync def main(): return await mcp__t__echo(a=1)\nawait mcp__t__echo()\nprint(asyncio.get_event_loop().run_until_complete(main()))", "{'a': 1}\n"),
    ("P1 get_event_loop without asyncio", "print('get_event_loop')", "get_event_loop\n"),
    ("P11 a second loop", "import asyncio\nasync def main(): return await mcp__t__echo(a=1)\nloop = asyncio.new_event_loop()\nawait mcp__t__echo()\nprint(loop.run_until_complete(main()))\nloop.close()", "{'a': 1}\n"),
    ("P11 run_until_complete of a call", "import asyncio\nprint(asyncio.new_event_loop().run_until_complete(mcp__t__echo(a=1)))", "{'a': 1}\n"),
    ("P11 context variables in a nested run", "import asyncio, contextvars\nv = contextvars.ContextVar('v')\nasync def main(): return v.get()\nv.set(7)\nawait asyncio.sleep(0)\nprint(asyncio.run(main()))", "7\n"),
    ("P11 asyncio.run of a call", "import asyncio\nprint(asyncio.run(mcp__t__echo(a=1)))", "{'a': 1}\n"),
    ("P11 gather", "import asyncio\nprint(await asyncio.gather(*[mcp__t__echo(a=i) for i in range(3)]))", "[{'a': 0}, {'a': 1}, {'a': 2}]\n"),
    ("P11 create_task", "import asyncio\nt = asyncio.create_task(mcp__t__echo(a=1))\nprint(await t)", "{'a': 1}\n"),
    ("P11 wait_for", "import asyncio\nprint(await asyncio.wait_for(mcp__t__echo(a=1), 50))", "{'a': 1}\n"),
    ("P11 as_completed", "import asyncio\nprint([await c for c in asyncio.as_completed([mcp__t__echo(a=1)])])", "[{'a': 1}]\n"),
    ("P11 shield and ensure_future", "import asyncio\nprint(await asyncio.shield(asyncio.ensure_future(mcp__t__echo(a=1))))", "{'a': 1}\n"),
    ("P11 gather in main", "import asyncio\nasync def main():\n    print(len(await asyncio.gather(*(mcp__t__echo(a=i) for i in range(300)))))\nasyncio.run(main())", "300\n"),
    ("P11 to_thread", "import asyncio\nprint(await asyncio.gather(asyncio.to_thread(sum, [1, 2]), mcp__t__echo(a=1)))", "[3, {'a': 1}]\n"),
    ("P11 a loop in a thread", "import asyncio\nasync def f(i): return await mcp__t__echo(a=i)\nprint(await asyncio.gather(*[asyncio.to_thread(asyncio.run, f(i)) for i in range(5)], f(9)))", "[{'a': 0}, {'a': 1}, {'a': 2}, {'a': 3}, {'a': 4}, {'a': 9}]\n"),
    ("P11 run_coroutine_threadsafe", "import asyncio\nloop = asyncio.get_running_loop()\ndef f(): return asyncio.run_coroutine_threadsafe(mcp__t__echo(a=1), loop).result()\nprint(await asyncio.to_thread(f))", "{'a': 1}\n"),
    ("P11 semaphore", "import asyncio\ns = asyncio.Semaphore(2)\nasync def f(i):\n    async with s: return await mcp__t__echo(a=i)\nprint(await asyncio.gather(*map(f, range(3))))", "[{'a': 0}, {'a': 1}, {'a': 2}]\n"),
    ("P11 asyncio by another name", "import importlib\na = importlib.import_module('asyn' + 'cio')\nprint(await a.gather(mcp__t__echo(a=1)))", "[{'a': 1}]\n"),
    ("P11 asyncio without a loop of ours", "import sys\nfrom unittest import mock\na = sys.modules['asyn' + 'cio']\nasync def f(): return await a.gather(mcp__t__echo(a=1), mcp__t__echo(a=2))\nprint(a.run(f()), await mcp__t__echo(a=3))", "[{'a': 1}, {'a': 2}] {'a': 3}\n"),
    ("P11 threads without asyncio", "import threading\nout = []\ndef f(i):\n    try: mcp__t__echo(a=i).send(None)\n    except StopIteration as e: out.append(e.value['a'])\nts = [threading.Thread(target=f, args=(i,)) for i in range(20)]\nfor t in ts: t.start()\nfor t in ts: t.join()\nprint(sorted(out) == list(range(20)), await mcp__t__echo(a=1))", "True {'a': 1}\n"),
    ("P11 keyword parameters", "print(await mcp__t__echo(from_=1, class_=2, in_=3, type_=4, x_=5))", "{'from': 1, 'class': 2, 'in': 3, 'type_': 4, 'x_': 5}\n"),
    ("P11 keyword parameters by **", "print(await mcp__t__echo(**{'from': 1}))", "{'from': 1}\n"),
    ("P11 a call knows asyncio's questions", "import asyncio, inspect\nc = mcp__t__echo()\nprint(asyncio.iscoroutine(c), inspect.isawaitable(c), hasattr(c, 'cr_frame'), repr(c))\nawait c", "True True False <call of mcp__t__echo(...), not awaited>\n"),
    ("P11 a task of a call can be shown", "import asyncio\nawait asyncio.sleep(0)\nt = asyncio.create_task(mcp__t__echo(a=1))\nprint('mcp__t__echo' in repr(t))\nawait t\nprint('mcp__t__echo' in repr(t))", "True\nTrue\n"),
    ("P11 a closed call is no forgotten one", "mcp__t__echo().close()", ""),
    ("P11 calls made ahead and not needed", "ahead = [mcp__t__echo(a=i) for i in range(5)]\nfor c in ahead:\n    if (await c)['a'] == 1: break", "Note: line 1: calls of mcp__t__echo(...) that were never awaited, and so did not run: 3\n"),
    ("P11 calls made ahead, stderr closed", "import sys\nsys.stderr.close()\nahead = [mcp__t__echo(a=i) for i in range(5)]\nprint(await ahead[0])", "{'a': 0}\n"),
    ("P11 a note is a line of its own", "ahead = [mcp__t__echo(a=i) for i in range(3)]\nprint(await ahead[0], end='')", "{'a': 0}\nNote: line 1: calls of mcp__t__echo(...) that were never awaited, and so did not run: 2\n"),
    ("P11 calls made ahead, after an error", "import asyncio\ns = asyncio.Semaphore(2)\nasync def limited(i, call):\n    async with s:\n        if i: raise KeyError(i)\n        return await call\ntry: await asyncio.gather(*[limited(i, mcp__t__echo(a=i)) for i in range(20)])\nexcept KeyError as e: print(e)", "1\nNote: line 7: calls of mcp__t__echo(...) that were never awaited, and so did not run: 19\n"),
    ("P11 a background task's error", "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    raise KeyError('k')\nt = asyncio.create_task(f())\nfor _ in range(3): await asyncio.sleep(0)\nprint(t.done())", "True\nNote: a background task failed and was not awaited:\nTraceback (most recent call last):\n  File \"<program>\", line 4, in f\n    raise KeyError('k')\nKeyError: 'k'\n"),
    ("P11 a background task's error, after asyncio.run", "import asyncio\nasync def f():\n    raise KeyError('k')\nasync def main():\n    global t\n    t = asyncio.create_task(f())\n    await asyncio.sleep(0)\n    await asyncio.sleep(0)\nasyncio.run(main())", "Note: a background task failed and was not awaited:\nTraceback (most recent call last):\n  File \"<program>\", line 3, in f\n    raise KeyError('k')\nKeyError: 'k'\n"),
    ("P11 a background task's error that was asked for", "import asyncio\nasync def f(): raise KeyError('k')\nts = [asyncio.create_task(f()) for _ in range(3)]\nfor r in await asyncio.gather(*ts[:1], return_exceptions=True): print(repr(r))\ntry: await ts[1]\nexcept KeyError as e: print(repr(e))\nprint(repr(ts[2].exception()))\nt = asyncio.create_task(asyncio.sleep(9))\nawait asyncio.sleep(0)\nt.cancel()\nawait asyncio.sleep(0)", "KeyError('k')\n" * 3),
    ("P9 a background task's error, and finalisers", "import asyncio\nclass A:\n    def __del__(self): print('late')\na = A()\na.a = a\nt = asyncio.create_task(asyncio.sleep(0))\nawait t\nprint('p')", "p\n"),
    ("P11 emit awaited", "print(await emit(1))", "None\n"),
    ("P11 emit's value", "print(emit(1))", "None\n"),
    ("P11 a signal's handler may raise", "import signal, time\ndef h(*a): raise TimeoutError('x')\nsignal.signal(signal.SIGALRM, h)\nsignal.setitimer(signal.ITIMER_REAL, 0.01)\ntry: time.sleep(9)\nexcept TimeoutError: print('t')\nprint(await mcp__t__echo(a=1))", "t\n{'a': 1}\n"),
    ("R8 integers beyond the default limit", "n = 10**6000\nr = await mcp__t__echo(a=n)\nprint(r['a'] == n, len(str(n)))", "True 6001\n"),
    ("chan-28 a patched json", "import json\njson.dumps = json.loads = None\nprint(await mcp__t__echo(a=1))", "{'a': 1}\n"),
    ("chan-31 a tracing program", "import sys\nsys.settrace(lambda *a: None)\nprint(await mcp__t__echo(a=1))", "{'a': 1}\n"),
    ("P9 builtins deleted", "import builtins\np, d = print, delattr\nfor n in list(vars(builtins)): d(builtins, n)\np(await mcp__t__echo(a=1))", "{'a': 1}\n"),
]

# least version, clause, program, its output
WORKS_SINCE = [
    ((3, 11), "P11 TaskGroup", "import asyncio\nasync with asyncio.TaskGroup() as g:\n    a = g.create_task(mcp__t__echo(a=1))\n    b = g.create_task(mcp__t__echo(a=2))\nprint(a.result(), b.result())", "{'a': 1} {'a': 2}\n"),
    ((3, 11), "P11 timeout", "import asyncio\nasync with asyncio.timeout(50):\n    print(await mcp__t__echo(a=1))", "{'a': 1}\n"),
    ((3, 11), "P11 Runner beside top-level await", "import asyncio\nasync def main(): return await mcp__t__echo(a=1)\nawait mcp__t__echo()\nwith asyncio.Runner() as r:\n    print(r.run(main()), r.run(main()))", "{'a': 1} {'a': 1}\n"),
    ((3, 12), "P11 eager tasks", "import asyncio\nasyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)\nprint(await asyncio.gather(mcp__t__echo(a=1), mcp__t__echo(a=2)))", "[{'a': 1}, {'a': 2}]\n"),
]

# clause, program, what its error must contain, what it must not
FAILS = [
    ("P2 positional", "await mcp__t__echo(1)", ["TypeError: mcp__t__echo() takes keyword arguments only, e.g. mcp__t__echo(query=...)"], []),
    ("P2 positional dict", "await mcp__t__echo({'city': 1})", ["e.g. mcp__t__echo(city=...)"], []),
    ("P2 nan", "await mcp__t__echo(a=[1, float('nan')])", ["TypeError: mcp__t__echo(): nan at ['a'][1] is not a JSON number"], []),
    ("P2 infinity", "await mcp__t__echo(a=float('-inf'))", ["TypeError: mcp__t__echo(): -inf at ['a'] is not a JSON number"], []),
    ("P2 bytes", "await mcp__t__echo(a=b'x')", ["TypeError: mcp__t__echo(): a bytes at ['a'] is not JSON: use .decode()"], []),
    ("P2 set", "await mcp__t__echo(a={'b': {1}})", ["TypeError: mcp__t__echo(): a set at ['a']['b'] is not JSON: use sorted(...)"], []),
    ("P2 datetime", "import datetime\nawait mcp__t__echo(a=datetime.date(2024, 1, 1))", ["a date at ['a'] is not JSON: use .isoformat()"], []),
    ("P2 object", "class Row: pass\nawait mcp__t__echo(a=Row())", ["TypeError: mcp__t__echo(): a Row at ['a'] is not JSON"], []),
    ("P2 integer key", "await mcp__t__echo(a={1: 2})", ["TypeError: mcp__t__echo(): the key 1 at ['a'] is an int, and JSON keys are strings"], []),
    ("P2 None key", "await mcp__t__echo(a=[{None: 2}])", ["the key None at ['a'][0] is a NoneType"], []),
    ("P2 circular list", "a = []\na.append(a)\nawait mcp__t__echo(a=a)", ["TypeError: mcp__t__echo(): the value contains itself"], []),
    ("P2 circular dict", "a = {}\na['b'] = [a]\nawait mcp__t__echo(a=a)", ["TypeError: mcp__t__echo(): the value contains itself"], []),
    ("P2 too deep", "a = []\nfor i in range(600): a = [a]\nawait mcp__t__echo(a=a)", ["TypeError: mcp__t__echo(): the value is nested more than 500 levels deep"], []),
    ("P2 far too deep", "a = []\nfor i in range(100000): a = [a]\nawait mcp__t__echo(a=a)", ["TypeError: mcp__t__echo(): the value is nested more than 500 levels deep"], []),
    ("P2 lone surrogate", "await mcp__t__echo(a='\\ud800')", ["TypeError: mcp__t__echo(): a string holds a lone surrogate"], []),
    ("P2 too large", "await mcp__t__echo(a='x' * (17 << 20))", ["ValueError: mcp__t__echo(): its arguments are 17825800 bytes of JSON; the limit is 16776192"], []),
    ("P2 an unawaited call as an argument", "await mcp__t__echo(a=mcp__t__other())", ["mcp__t__other(...) is used at ['a'] before it was awaited", "await mcp__t__other(...)"], []),
    ("P2 a coroutine as an argument", "async def f(): pass\nawait mcp__t__echo(a=f())", ["a coroutine at ['a'] is not JSON: did you forget \"await\"?"], []),
    ("P4 not JSON", "emit({1, 2})", ["TypeError: emit(): a set is not JSON"], []),
    ("P4 nan", "emit(float('nan'))", ["TypeError: emit(): nan is not a JSON number"], []),
    ("P4 too large", "emit('x' * 70000)", ["ValueError: emit(): the value is 70002 bytes of JSON; the limit is 65536"], []),
    ("P7 frames", "def f():\n    raise KeyError('k')\n\nf()", ['Traceback (most recent call last):\n  File "<program>", line 4, in <module>\n    f()\n', '  File "<program>", line 2, in f\n    raise KeyError(\'k\')\nKeyError: \'k\''], ["<string>"]),
    ("P7 frames in the loop", "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    raise KeyError('k')\nawait asyncio.gather(f())", ['  File "<program>", line 5, in <module>\n', '  File "<program>", line 4, in f\n', "KeyError: 'k'"], ["<string>", "asyncio/"]),
    ("P7 frames of the library", "import json\njson.loads('{')", ['  File "<program>", line 2, in <module>\n    json.loads(\'{\')\n', "JSONDecodeError: Expecting property name"], ["decoder.py"]),
    ("P7 a nested run", "import asyncio\nasync def main():\n    1/0\nawait asyncio.sleep(0)\nasyncio.run(main())", ['File "<program>", line 5, in <module>\n', 'File "<program>", line 3, in main\n    1/0\n'], ["<string>", "runners.py"]),
    ("P7 a chain", "try:\n    1/0\nexcept Exception as e:\n    raise ValueError('v') from e", ["line 2, in <module>\n    1/0\n", "ZeroDivisionError: division by zero\n\nThe above exception was the direct cause", "line 4, in <module>\n", "ValueError: v"], []),
    ("P7 a context", "try:\n    1/0\nexcept Exception as e:\n    raise ValueError('v')", ["During handling of the above exception"], []),
    ("P7 ToolError in a chain", "try:\n    await mcp__t__echo(1)\nexcept TypeError as e:\n    raise ToolError('x') from e", ["\nToolError: x"], ["<string>", "builtins."]),
    ("P7 a syntax error", "x = 1\ny = = 2", ['  File "<program>", line 2\n    y = = 2\n        ^\nSyntaxError: invalid syntax'], ["Traceback"]),
    ("P7 an indentation error", "if 1:\nx", ["IndentationError: expected an indented block"], []),
    ("P7 a NUL", "x\0", ["null bytes"], []),
    ("P7 a surrogate in the source", "x = '\ud800'", ["surrogates not allowed"], []),
    ("P7 deep source", "x = " + "(" * 5000 + ")" * 5000, ["Error"], []),
    ("P7 exit 3", "import sys\nsys.exit(3)", ["SystemExit: 3"], []),
    ("P7 exit with text", "import sys\nsys.exit('no rows')", ["SystemExit: no rows"], []),
    ("P7 exit with what has no text", "class A:\n    def __str__(self): 1/0\nraise SystemExit(A())", ["SystemExit"], []),
    ("P7 exit in a task", "import asyncio, sys\nasync def f(): sys.exit(4)\nt = asyncio.create_task(f())\nawait asyncio.sleep(1000)", ["SystemExit: 4"], []),
    ("P7 exit in a nested run", "import asyncio, sys\nasync def f(): sys.exit(4)\nawait asyncio.sleep(0)\nasyncio.run(f())", ["SystemExit: 4"], []),
    ("P7 KeyboardInterrupt", "raise KeyboardInterrupt", ['line 1, in <module>', "KeyboardInterrupt"], []),
    ("P7 a BaseException", "class B(BaseException): pass\nraise B('b')", ["B: b"], []),
    ("P7 GeneratorExit", "raise GeneratorExit('g')", ["GeneratorExit: g"], []),
    ("P7 CancelledError", "import asyncio\nawait asyncio.sleep(0)\nraise asyncio.CancelledError()", ["CancelledError"], []),
    ("P7 StopIteration", "raise StopIteration(3)", ["StopIteration"], []),
    ("P7 StopIteration beside await", "await mcp__t__echo()\nraise StopIteration(3)", ["StopIteration", "line 2, in <module>"], []),
    ("P7 StopIteration in the loop", "import asyncio\nawait mcp__t__echo()\nnext(iter([]))", ["StopIteration", "line 3, in <module>"], []),
    ("P7 StopIteration from an iterator", "await mcp__t__echo()\nx = next(r for r in [1] if r > 1)", ["StopIteration", "line 2, in <module>"], []),
    ("P7 str() fails", "class E(Exception):\n    def __str__(self): raise ValueError\nraise E()", ["E: <"], []),
    ("P7 str() exits", "import sys\nclass E(Exception):\n    def __str__(self): sys.exit(0)\nraise E()", ["E: "], []),
    ("P7 a huge message", "raise ValueError('x' * 1000000 + 'end')", ["line 1, in <module>", "characters left out", "xend"], []),
    ("P7 a surrogate in the message", "raise ValueError('\\ud800')", ["ValueError: \\ud800"], []),
    ("P7 recursion", "def f(): f()\nf()", ["line 1, in f", "Previous line repeated", "RecursionError: maximum recursion depth exceeded"], []),
    ("P7 deep recursion", "import sys\nsys.setrecursionlimit(20000)\ndef f(n):\n    if n: f(n - 1)\n    else: 1/0\nf(10000)", ["ZeroDivisionError"], []),
    ("P7 a low recursion limit", "import sys\nsys.setrecursionlimit(40)\n1/0", ["ZeroDivisionError: division by zero"], []),
    ("P7 a long chain", "e = None\nfor i in range(5000):\n    try: raise ValueError(i) from e\n    except ValueError as x: e = x\nraise e", ["ValueError: 4999"], []),
    ("P7 an exception that is its own cause", "e = ValueError('v')\ne.__cause__ = e\nraise e", ["ValueError: v"], []),
    ("P7 builtins deleted", "import builtins\nd = delattr\nfor n in list(vars(builtins)): d(builtins, n)\n1/0", ['File "<program>", line 4', "1/0", "ZeroDivisionError: division by zero"], []),
    ("P7 traceback broken", "import traceback\ntraceback.TracebackException = None\n1/0", ['File "<program>", line 3', "1/0", "ZeroDivisionError: division by zero"], []),
    ("P7 stdout closed", "import sys\nsys.stdout.close()\nprint(1)", ["ValueError: I/O operation on closed file"], []),
    ("P7 ToolError uncaught", "raise ToolError('no')", ["line 1, in <module>", "\nToolError: no"], []),
    ("P11 both spellings", "await mcp__t__echo(**{'from': 1, 'from_': 2})", ["TypeError: mcp__t__echo() got both 'from' and 'from_'"], []),
    ("P11 forgotten: bare", "x = 1\nmcp__t__echo(a=x)", ['File "<program>", line 2\n    mcp__t__echo(a=x)\n', 'RuntimeError: mcp__t__echo(...) is never awaited, so it would not run: write "await mcp__t__echo(...)"'], []),
    ("P11 forgotten: assigned", "x = mcp__t__echo()", ["never awaited"], []),
    ("P11 forgotten: all of a list", "x = [mcp__t__echo(a=i) for i in range(3)]", ["never awaited", 'write "await mcp__t__echo(...)"'], []),
    ("P11 forgotten: beside another tool's await", "x = await mcp__t__echo(), mcp__t__other()", ["RuntimeError: mcp__t__other(...) was never awaited"], []),
    ("P11 forgotten: beside another line's await", "await mcp__t__echo()\nx = mcp__t__echo()", ["line 2", "RuntimeError: mcp__t__echo(...) was never awaited"], []),
    ("P11 forgotten: then exit", "mcp__t__echo()\nexit()", ["never awaited"], []),
    ("P11 forgotten: a task that got no turn", "import asyncio\nawait asyncio.sleep(0)\nt = asyncio.create_task(mcp__t__echo())", ["never awaited"], []),
    ("P11 forgotten: subscript", "mcp__t__echo()['x']", ['TypeError: mcp__t__echo(...) is subscripted before it was awaited: did you forget "await"?'], []),
    ("P11 forgotten: loop", "for x in mcp__t__echo(): pass", ['did you forget "await"?'], []),
    ("P11 forgotten: async loop", "async for x in mcp__t__echo(): pass", ['did you forget "await"?'], []),
    ("P11 forgotten: print", "print(mcp__t__echo())", ['did you forget "await"?'], []),
    ("P11 forgotten: f-string", "f'{mcp__t__echo()}'", ['did you forget "await"?'], []),
    ("P11 forgotten: format with a width", "f'{mcp__t__echo():>10}'", ['did you forget "await"?'], []),
    ("P11 forgotten: compare", "mcp__t__echo() == 1", ['did you forget "await"?'], []),
    ("P11 forgotten: order", "mcp__t__echo() > 1", ['did you forget "await"?'], []),
    ("P11 forgotten: truth", "if mcp__t__echo(): pass", ['did you forget "await"?'], []),
    ("P11 forgotten: len", "len(mcp__t__echo())", ['did you forget "await"?'], []),
    ("P11 forgotten: in", "1 in mcp__t__echo()", ['did you forget "await"?'], []),
    ("P11 forgotten: method", "mcp__t__echo().get('x')", ["AttributeError", 'did you forget "await"?'], []),
    ("P11 forgotten: add", "1 + mcp__t__echo()", ['did you forget "await"?'], []),
    ("P11 forgotten: sorted", "sorted(mcp__t__echo())", ['did you forget "await"?'], []),
    ("P11 forgotten: json", "import json\njson.dumps(mcp__t__echo())", ["without await"], []),
    ("P11 forgotten: other operators", "mcp__t__echo() ** 2", ["without await"], []),
    ("P11 forgotten: with", "async with mcp__t__echo(): pass", ['await'], []),
    ("P11 forgotten: helper", "len(list_callable_tools())", ['list_callable_tools(...) is measured before it was awaited'], []),
    ("P11 forgotten: emit", "emit(mcp__t__echo())", ["mcp__t__echo(...) is used before it was awaited"], []),
    ("P11 forgotten: own coroutine", "async def main(): print(1)\nmain()", ['RuntimeError: main(...) was never awaited, so it did not run: write "await main(...)"'], []),
    ("P11 forgotten: own coroutine, kept", "async def main(): print(1)\nx = main()", ["main(...) was never awaited"], []),
    ("P11 awaited twice", "c = mcp__t__echo()\nawait c\nawait c", ["RuntimeError: mcp__t__echo(...) was already awaited"], []),
    ("P11 a loop is needed", "class A:\n    def __await__(self): yield 1\nawait A()", ['RuntimeError: this "await" needs an event loop', "import asyncio", "line 3"], []),
    ("P11 run_until_complete of a task of the running loop", "import asyncio\nawait asyncio.sleep(0)\nt = asyncio.create_task(asyncio.sleep(0))\nasyncio.get_running_loop().run_until_complete(t)", ["await the task instead"], []),
]

FAILS_SINCE = [
    ((3, 11), "P7 a group", "raise ExceptionGroup('g', [ValueError('v'), TypeError('t')])", ["ExceptionGroup: g (2 sub-exceptions)", "ValueError: v", "TypeError: t"], ["<string>"]),
    ((3, 11), "P7 a TaskGroup's group", "import asyncio\nasync def f():\n    raise KeyError('k')\nasync with asyncio.TaskGroup() as g:\n    g.create_task(f())", ["ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)", 'File "<program>", line 3, in f', "KeyError: 'k'"], ["<string>", "taskgroups.py"]),
    ((3, 11), "P7 notes", "e = ValueError('v')\ne.add_note('a note')\nraise e", ["ValueError: v\na note"], []),
]


class Case(unittest.TestCase):
    maxDiff = None

    def pythons(self):
        return PYTHONS

    def each(self, table, check):
        """Runs every row's program, some at a time, and checks each as a test of its own."""
        rows = []
        for python in PYTHONS:
            for row in table:
                least, row = (row[0], row[1:]) if isinstance(row[0], tuple) else ((3, 9), row)
                if VERSIONS[python] >= least:
                    rows.append((python, *row))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for row, run in zip(rows, pool.map(lambda row: Run(row[0], row[2]), rows)):
                with self.subTest(row[1], python=row[0]):
                    check(run, *row[1:])


class Tables(Case):
    def test_what_works(self):
        def check(run, clause, code, output):
            self.assertEqual((run.error, run.output), (None, output))
            self.assertTrue(run.done)
            self.assertEqual((run.rest, run.stderr, run.status), (b"", b"", 0))

        self.each(WORKS + WORKS_SINCE, check)

    def test_what_fails(self):
        def check(run, clause, code, present, absent):
            self.assertTrue(run.done)
            self.assertIsNotNone(run.error)
            for text in present:
                self.assertIn(text, run.error)
            for text in absent:
                self.assertNotIn(text, run.error)
            self.assertLess(len(run.error), 70000)
            self.assertEqual((run.rest, run.stderr), (b"", b""))
            if clause.startswith("P2"):  # nothing is sent
                self.assertEqual(run.calls, [])

        self.each(FAILS + FAILS_SINCE, check)


class Protocol(Case):
    def test_ready_comes_before_start_and_done_is_last(self):
        for python in self.pythons():
            run = Run(python, "print(1)")
            self.assertEqual(run.frames[0]["type"], "ready")
            self.assertEqual(run.frames[0]["version"], 1)
            self.assertEqual(tuple(map(int, run.frames[0]["python"].split(".")))[:2], VERSIONS[python])
            self.assertEqual(run.frames[-1], {"type": "done", "error": None})

    def test_a_call_frame(self):
        for python in self.pythons():
            run = Run(python, "await mcp__t__echo(b='é', a=[1, None])")
            self.assertEqual(run.calls, [{"type": "call", "id": 1, "tool": "mcp__t__echo", "arguments": {"b": "é", "a": [1, None]}}])

    def test_a_help_frame(self):
        for python in self.pythons():
            run = Run(python, "await inspect_tool(tool_name=['a'])")
            self.assertEqual(run.calls, [{"type": "help", "id": 1, "name": "inspect_tool", "arguments": {"tool_name": ["a"]}}])

    def test_raise_becomes_tool_error(self):  # contract: P3
        def reply(child, frame):
            child.send({"type": "raise", "id": frame["id"], "message": "'mcp__t__echo' returned an error: é"})

        for python in self.pythons():
            for code in ("", "import asyncio\n"):
                run = Run(python, code + "try:\n    await mcp__t__echo()\nexcept ToolError as e:\n    print(e)", reply)
                self.assertEqual((run.error, run.output), (None, "'mcp__t__echo' returned an error: é\n"))
                run = Run(python, code + "await mcp__t__echo()", reply)
                self.assertIn("\nToolError: 'mcp__t__echo' returned an error: é", run.error)
                self.assertNotIn("<string>", run.error)

    def test_emit_sends_each_value(self):  # contract: P4
        for python in self.pythons():
            self.assertEqual(Run(python, "emit(1)\nemit({'a': [1, 'é']})\nemit(None)").emitted, [1, {"a": [1, "é"]}, None])

    def test_emit_measures_compact_utf8(self):  # contract: P4
        for python in self.pythons():
            self.assertEqual(Run(python, "emit({'a': 'é'})", limit=10).emitted, [{"a": "é"}])
            self.assertIn("10 bytes of JSON; the limit is 9", Run(python, "emit({'a': 'é'})", limit=9).error)

    def test_replies_out_of_order(self):
        held = []

        def reply(child, frame):
            held.append(frame)
            if len(held) == 3:
                for one in reversed(held):
                    echo(child, one)
                held.clear()

        for python in self.pythons():
            run = Run(python, "import asyncio\nprint(await asyncio.gather(*[mcp__t__echo(a=i) for i in range(3)]))", reply)
            self.assertEqual(run.output, "[{'a': 0}, {'a': 1}, {'a': 2}]\n")

    def test_replies_out_of_order_to_blocked_threads(self):
        held = []

        def reply(child, frame):
            held.append(frame)
            if len(held) == 3:
                for one in reversed(held):
                    echo(child, one)
                held.clear()

        code = (
            "import threading\nout = []\ndef f(i):\n    try: mcp__t__echo(a=i).send(None)\n    except StopIteration as e: out.append(e.value['a'])\n"
            "ts = [threading.Thread(target=f, args=(i,)) for i in range(3)]\nfor t in ts: t.start()\nfor t in ts: t.join()\nprint(sorted(out))"
        )
        for python in self.pythons():
            self.assertEqual(Run(python, code, reply).output, "[0, 1, 2]\n")

    def test_an_abandoned_call_is_cancelled_and_its_late_reply_dropped(self):
        late = []

        def reply(child, frame):
            if frame["arguments"].get("slow"):
                late.append(frame)
            else:
                for one in late:
                    echo(child, one)
                late.clear()
                echo(child, frame)

        code = (
            "import asyncio\ntry:\n    await asyncio.wait_for(mcp__t__echo(slow=1), 0.02)\n"
            "except asyncio.TimeoutError:\n    print('late')\nprint(await mcp__t__echo(a=2))"
        )
        for python in self.pythons():
            run = Run(python, code, reply)
            self.assertEqual((run.error, run.output, run.cancelled), (None, "late\n{'a': 2}\n", [1]))

    def test_a_call_interrupted_by_a_signal_is_cancelled(self):
        late = []

        def reply(child, frame):
            if frame["arguments"].get("slow"):
                late.append(frame)
            else:
                echo(child, late.pop())
                echo(child, frame)

        code = (
            "import signal\ndef h(*a): raise TimeoutError\nsignal.signal(signal.SIGALRM, h)\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\n"
            "try: await mcp__t__echo(slow=1)\nexcept TimeoutError: print('late')\nprint(await mcp__t__echo(a=2))"
        )
        for python in self.pythons():
            run = Run(python, code, reply)
            self.assertEqual((run.error, run.output, run.cancelled), (None, "late\n{'a': 2}\n", [1]))

    def test_a_cancelled_task_before_its_first_step_sends_nothing(self):
        for python in self.pythons():
            run = Run(python, "import asyncio\nt = asyncio.create_task(mcp__t__echo())\nt.cancel()\ntry: await t\nexcept asyncio.CancelledError: print('c')")
            self.assertEqual((run.error, run.output, run.calls, run.cancelled), (None, "c\n", [], []))

    def test_unknown_and_repeated_replies_are_ignored(self):
        def reply(child, frame):
            child.send({"type": "return", "id": 999, "value": 1})
            echo(child, frame)
            echo(child, frame)

        for python in self.pythons():
            for first in ("", "import asyncio\n"):
                run = Run(python, first + "print(await mcp__t__echo(a=1))\nprint(await mcp__t__echo(a=2))", reply)
                self.assertEqual((run.error, run.output), (None, "{'a': 1}\n{'a': 2}\n"))

    def test_a_large_result(self):
        rows = [{"id": i, "name": "row %d é" % i, "v": i / 7} for i in range(60000)]
        text = json.dumps(rows, ensure_ascii=False).encode()

        def reply(child, frame):
            child.send(b'{"type":"return","id":%d,"value":%s}' % (frame["id"], text))

        for python in self.pythons():
            for code in ("", "import asyncio\n"):
                run = Run(python, code + "r = await mcp__t__echo()\nimport gc\nprint(len(r), r[-1]['name'], gc.isenabled())", reply)
                self.assertEqual((run.error, run.output), (None, "60000 row 59999 é True\n"))

    def test_a_reply_that_cannot_be_read_fails_its_own_call(self):  # contract: P8, P9, P11
        held = []

        def reply(child, frame):
            if frame["arguments"]["a"] > 10:
                held.append(frame)
                if len(held) == 3:
                    for one in sorted(held, key=lambda one: one["arguments"]["a"]):
                        one["arguments"]["a"] -= 10
                        reply(child, one)
                    held.clear()
            elif frame["arguments"]["a"] == 1:
                text = b"x" * frame["arguments"]["long"] + b"\xff"
                child.send(b'{"type":"return","id":%d,"value":"%s"}' % (frame["id"], text))
            else:
                echo(child, frame)

        one = "try: await mcp__t__echo(a=1, long=L)\nexcept UnicodeDecodeError as e: print(0)\nprint((await mcp__t__echo(a=2))['a'])"
        gather = "print(*[r['a'] if isinstance(r, dict) else 0 for r in await asyncio.gather(*[mcp__t__echo(a=i, long=L) for i in (1, 2)], return_exceptions=True)], sep='\\n')"
        # One thread reads what the others wait for.
        threads = (
            "out = {}\ndef f(i):\n    try: mcp__t__echo(a=i, long=L).send(None)\n    except StopIteration as e: out[i] = e.value['a']\n"
            "    except UnicodeDecodeError: out[i] = 0\nts = [threading.Thread(target=f, args=(i,)) for i in (13, 12, 11)]\n"
            "for t in ts: t.start()\nfor t in ts: t.join()\nprint(out[11], out[12], sep='\\n')"
        )
        for python in self.pythons():
            for code in (one, "import asyncio\n" + one, "import asyncio\n" + gather, "import threading\n" + threads):
                for long in (1, 200000):
                    with self.subTest(code, python=python):
                        run = Run(python, f"L = {long}\n" + code, reply)
                        self.assertEqual((run.error, run.output), (None, "0\n2\n"))

    @unittest.skipUnless(sys.platform == "linux", "needs a limit of the address space")
    def test_a_reply_that_does_not_fit_in_memory_fails_its_own_call(self):  # contract: P8, P11
        def reply(child, frame):
            size = frame["arguments"].get("size", 0)
            child.send(b'{"type":"return","id":%d,"value":"%s"}' % (frame["id"], b"x" * size))

        code = (
            "import resource\npages = int(open('/proc/self/statm').read().split()[0])\n"
            "resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM, -1))\n"
            "try: await mcp__t__echo(size=16 << 20)\nexcept MemoryError: print('too large')\nprint(len(await mcp__t__echo(size=9)))"
        )
        for python in self.pythons():
            if is_free_threaded(python):
                self.skipTest(f"'{python}' takes large values out of address space that it has reserved at its start")
            for first in ("", "import asyncio\nawait asyncio.sleep(0)\n"):
                for room in (4 << 20, 24 << 20):  # not for its bytes, or not for their text
                    run = Run(python, f"{first}ROOM = {room}\n{code}", reply)
                    self.assertEqual((run.error, run.output), (None, "too large\n9\n"))

    def test_an_accelerator_of_another_version(self):  # contract: P1
        # CPython 3.15 asks for `array_hook`; a later one may ask for what nobody knows yet.
        for wanted in ("array_hook", "not_known_yet"):
            text = (
                "import _json\ndef make_scanner(options, make=_json.make_scanner):\n"
                f"    if isinstance(options, type): options.{wanted}\n    return make(options)\n_json.make_scanner = make_scanner\n" + BOOTSTRAP
            )
            for python in self.pythons():
                run = Run(python, "print(await mcp__t__echo(a=[1, 'é']))\nemit({'a': 1})", text=text)
                self.assertEqual((run.error, run.output, run.emitted), (None, "{'a': [1, 'é']}\n", [{"a": 1}]))

    def test_a_frame_that_arrives_byte_by_byte(self):
        def reply(child, frame):
            data = json.dumps({"type": "return", "id": frame["id"], "value": "x" * 50}).encode()
            for byte in len(data).to_bytes(4, "big") + data:
                child.stdin.write(bytes([byte]))

        for python in self.pythons():
            for code in ("", "import asyncio\n"):
                self.assertEqual(Run(python, code + "print(len(await mcp__t__echo()))", reply).output, "50\n")

    def test_values_come_exactly(self):  # contract: R8, R11
        values = [
            ("12345678901234567890123", "12345678901234567890123"),
            ("9" * 5000, "9" * 5000),
            ("1.0", "1.0"),
            ("1e400", "inf"),
            ('{"a":1,"a":2}', "{'a': 2}"),
            ('"\\ud800"', "'\\ud800'"),
            ("[" * 500 + "]" * 500, "[" * 500 + "]" * 500),
            (' {"a" : [ ] } ', "{'a': []}"),
        ]
        for python in self.pythons():
            for text, shown in values:
                with self.subTest(text[:30]):
                    run = Run(
                        python,
                        "print(repr(await mcp__t__echo()))",
                        lambda child, frame: child.send(b'{"type":"return","id":%d,"value":%s}' % (frame["id"], text.encode())),
                    )
                    self.assertEqual((run.error, run.output), (None, shown + "\n"))

    def test_a_program_ends_when_the_host_is_gone(self):
        for python in self.pythons():
            for code in ("await mcp__t__echo()", "import asyncio\nawait mcp__t__echo()"):
                child = Child(python)
                child.receive()
                child.send({"type": "start", "code": code, "tools": ["mcp__t__echo"], "helpers": [], **NOTHING_KNOWN, "max_output_bytes": 9})
                self.assertEqual(child.receive()["type"], "call")
                _, stderr, status = child.close()
                self.assertEqual((stderr, status), (b"", 1))

    def test_a_waiting_child_ends_when_the_host_is_gone(self):
        for python in self.pythons():
            child = Child(python)
            child.receive()
            _, stderr, _ = child.close()
            self.assertEqual(stderr, b"")

    def test_started_from_compiled_code(self):
        for python in self.pythons():
            command = [python, "-I", "-S", "-B", "-c", COMPILE]
            compiled = subprocess.run(command, input=BOOTSTRAP.encode(), stdout=subprocess.PIPE, check=True).stdout
            child = Child(python, LOADER)
            child.send(compiled)
            self.assertEqual(child.receive()["type"], "ready")
            start = {"type": "start", "code": "emit(1 / 0)", "tools": [], "helpers": [], **NOTHING_KNOWN, "max_output_bytes": 99}
            child.send(start)
            error = child.receive()["error"]
            self.assertEqual(error.splitlines()[1:3], ['  File "<program>", line 1, in <module>', "    emit(1 / 0)"])
            self.assertNotIn("<string>", error)
            self.assertEqual(child.close(), (b"", b"", 0))

    def test_start_while_modules_are_loaded_ahead(self):
        for python in self.pythons():
            for delay in (0, 0.01, 0.03, 0.1, 0.3):
                child = Child(python)
                child.receive()
                time.sleep(delay)
                code = "import asyncio, ssl\nprint(asyncio.base_events.ssl is ssl, await mcp__t__echo(a=1))"
                child.send({"type": "start", "code": code, "tools": ["mcp__t__echo"], "helpers": [], **NOTHING_KNOWN, "max_output_bytes": 99})
                echo(child, child.receive())
                output = ""
                while True:
                    frame = child.receive()
                    if frame["type"] == "done":
                        break
                    output += frame["text"]
                child.close()
                self.assertEqual((frame["error"], output), (None, "True {'a': 1}\n"))


class Output(Case):
    def test_each_write_is_sent_at_once(self):  # contract: P6
        for python in self.pythons():
            run = Run(python, "import os\nprint('kept', end='')\nos.kill(os.getpid(), 9)")
            self.assertEqual((run.done, run.output, run.status), (False, "kept", -9))

    def test_a_crash_shows_what_was_printed(self):  # contract: P6
        for python in self.pythons():
            run = Run(python, "print('kept')\nimport os\nos._exit(0)")
            self.assertEqual((run.done, run.output), (False, "kept\n"))

    def test_a_warning_of_the_parser_is_told_once(self):  # contract: P6
        code = "await mcp__t__echo()\nx = '\\d'"
        for python in self.pythons():
            run = Run(python, code)
            told = 1 if VERSIONS[python] >= (3, 12) else 0
            self.assertEqual((run.error, run.output.count("SyntaxWarning")), (None, told))

    def test_a_little_more_than_the_limit_is_sent_and_the_program_goes_on(self):  # contract: P6
        for python in self.pythons():
            run = Run(python, "for i in range(1000): print('é' * 50)\nemit('end')", limit=1000)
            self.assertEqual((run.error, run.emitted), (None, ["end"]))
            self.assertGreater(len(run.output.encode()), 1000)
            self.assertLess(len(run.output.encode()), 1010)

    def test_the_limit_is_met_exactly(self):  # contract: P6
        for python in self.pythons():
            self.assertEqual(Run(python, "print('x' * 9)", limit=10).output, "x" * 9 + "\n")

    def test_large_output_is_split(self):
        for python in self.pythons():
            run = Run(python, "print('\\x01é' * 3000000)", limit=1 << 30)
            self.assertEqual(run.output, "\x01é" * 3000000 + "\n")

    def test_frames_of_threads_stay_whole(self):
        code = (
            "import threading\ndef f(i):\n    for _ in range(200): print(str(i) * (5 if i % 2 else 5000) + '\\n', end='')\n"
            "ts = [threading.Thread(target=f, args=(i,)) for i in range(8)]\nfor t in ts: t.start()\nfor t in ts: t.join()"
        )
        for python in self.pythons():
            run = Run(python, code, limit=1 << 30)
            self.assertEqual(run.error, None)
            lines = run.output.splitlines()
            self.assertEqual(len(lines), 1600)
            self.assertTrue(all(len(set(line)) == 1 for line in lines))

    def test_a_signal_handler_may_print_anywhere(self):
        code = (
            "import itertools, signal\nc = itertools.count()\ndef h(*a):\n    next(c)\n    print('h')\nsignal.signal(signal.SIGALRM, h)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\nfor i in range(300): print('x' * 20000)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0)\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nprint(next(c))"
        )
        for python in self.pythons():
            run = Run(python, code, limit=1 << 30)
            self.assertEqual(run.error, None)
            handled = int(run.output.split()[-1])
            self.assertEqual(run.output.count("h"), handled)
            self.assertEqual(run.output.count("x"), 300 * 20000)

    def test_nothing_is_sent_after_done(self):  # contract: P9
        code = (
            "import threading\ndef f():\n    while True: print('t')\nfor _ in range(4): threading.Thread(target=f).start()\n"
            "class E(Exception):\n    def __str__(self): print('s'); return 'e'\nraise E"
        )
        for python in self.pythons():
            run = Run(python, code, limit=1 << 40)
            self.assertEqual(run.frames[-1]["type"], "done")
            self.assertIn("E: e", run.error)
            self.assertEqual(run.rest, b"")


class Descriptors(Case):
    def test_the_channel_is_off_the_first_three(self):  # contract: P9
        code = (
            "import os, stat\nn = os.stat('/dev/null').st_rdev\n"
            "print([os.fstat(fd).st_rdev == n for fd in range(3)], [stat.S_ISFIFO(os.fstat(fd).st_mode) for fd in (3, 4)],"
            " [os.get_inheritable(fd) for fd in (3, 4)])\n"
            "for fd in range(5, 50):\n    try: os.fstat(fd); print('open:', fd)\n    except OSError: pass"
        )
        for python in self.pythons():
            run = Run(python, code)
            self.assertEqual(run.output, "[True, True, True] [True, True] [False, False]\n")

    def test_a_fork_cannot_reach_the_channel(self):  # contract: P9 (sandbox: none)
        code = (
            "import os, sys\npid = os.fork()\nif pid == 0:\n    print('child')\n    sys.stdout.flush()\n    emit(1)\n"
            "    try: await mcp__t__echo()\n    except RuntimeError: os._exit(7)\n    os._exit(8)\n"
            "print(os.waitpid(pid, 0)[1] >> 8)\npid = os.fork()\nif pid: print('parent', os.waitpid(pid, 0)[1])"
        )
        for python in self.pythons():
            run = Run(python, code)
            self.assertEqual((run.error, run.output, run.emitted, run.calls), (None, "7\nparent 0\n", [], []))
            self.assertEqual([frame["type"] for frame in run.frames].count("done"), 1)

    def test_a_closed_channel_ends_the_process(self):  # catalogue: chan-18
        for python in self.pythons():
            run = Run(python, "import os\nos.close(3)\nos.close(4)")
            self.assertEqual((run.done, run.rest), (False, b""))


class Scale(Case):
    def test_a_thousand_tools_and_a_thousand_calls(self):
        tools = ["mcp__server__tool_%d" % i for i in range(1000)]
        code = "for i in range(1000):\n    r = await globals()['mcp__server__tool_%d' % i](a=i)\n    assert r == {'a': i}\nprint('ok')"
        for python in self.pythons():
            for first in ("", "import asyncio\n"):
                run = Run(python, first + code, tools=tools)
                self.assertEqual((run.error, run.output), (None, "ok\n"))

    def test_no_asyncio_unless_it_is_needed(self):
        code = "import sys\nawait mcp__t__echo()\nprint(sorted(m for m in ('trace' + 'back', 'json', 'os', 're') if m in sys.modules))\nprint('asyn' + 'cio' in sys.modules)"
        for python in self.pythons():
            # The cold path, where nothing is loaded ahead.
            child = Child(python, first={"type": "start", "code": code, "tools": ["mcp__t__echo"], "helpers": [], **NOTHING_KNOWN, "max_output_bytes": 999})
            output = ""
            while True:
                frame = child.receive()
                if frame["type"] == "call":
                    echo(child, frame)
                elif frame["type"] == "output":
                    output += frame["text"]
                elif frame["type"] == "done":
                    break
            child.close()
            self.assertEqual((frame["error"], output), (None, "[]\nFalse\n"))


if __name__ == "__main__":
    unittest.main()
