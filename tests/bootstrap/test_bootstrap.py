"""The child's half of the channel against a host of a few lines, over real pipes.

    python3 tests/bootstrap/test_bootstrap.py

runs everything with the running interpreter; PTC_MCP_TEST_PYTHONS names others (paths, separated
by the path separator), each of which then runs everything. Nothing has to be installed.

Most facts are a line of a table in `programs.py`; the host is in `host.py`.
"""

import concurrent.futures
import json
import subprocess
import sys
import time
import unittest

from host import BOOTSTRAP, COMPILE, LOADER, NOTHING_KNOWN, PYTHONS, VERSIONS, Child, Run, echo, is_free_threaded
from programs import FAILS, FAILS_SINCE, WORKS, WORKS_SINCE


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
