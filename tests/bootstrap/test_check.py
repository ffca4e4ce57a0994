"""The check before the run, by itself: what it finds, and above all what it leaves alone.

    python3 tests/bootstrap/test_check.py

runs everything with the running interpreter; PTC_MCP_TEST_PYTHONS names others, each of which then
runs everything. Most facts are a line of a table.
"""

import os
import pathlib
import random
import subprocess
import sys
import time
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "src" / "channel" / "check.py"
TOP_LEVEL_AWAIT = 0x2000

check = {}
exec(compile(CHECK.read_text(), str(CHECK), "exec"), check)

OFFER = {
    "tools": ["mcp__down__any", "mcp__hr__closed", "mcp__hr__get", "mcp__hr__list", "mcp__hr__mail", "mcp__hr__odd"],
    "helpers": ["list_callable_tools", "inspect_tool", "server_status"],
    "named": {
        "mcp__hr__get": {"required": ["id"], "allowed": None, "signature": "async def mcp__hr__get(*, id: int) -> Any: ..."},
        "mcp__hr__odd": {"required": ["id", "a-b"], "allowed": None, "signature": "async def mcp__hr__odd(...) -> Any: ..."},
        "mcp__hr__list": {"required": [], "allowed": None, "signature": "async def mcp__hr__list() -> Any: ..."},
        "mcp__hr__closed": {
            "required": [],
            "allowed": ["limit", "since"],
            "signature": "async def mcp__hr__closed(*, limit: int = ..., since: str = ...) -> Any: ...",
        },
        "mcp__hr__mail": {
            "required": ["from", "to"],
            "allowed": ["from", "to", "a-b", "in_"],
            "signature": "async def mcp__hr__mail(*, from_: str, to: str) -> Any: ...",
        },
    },
    "closest": {"mcp__hr__gett": ["mcp__hr__get"]},
    "down": ["mcp__down__"],
    "underscored": {"mcp__hr__mail": ["in_"]},
}


def found(code):
    return check["find_mistakes"](code, "<program>", TOP_LEVEL_AWAIT, OFFER)


# program, (line, words) of each finding
WRONG = [
    ("await mcp__hr__gett(id=1)", [(1, "NameError: name 'mcp__hr__gett'", "closest: mcp__hr__get")]),
    ("x = 1\nprint(x)\nawait mcp__nope__x()", [(3, "list_callable_tools() gives the names")]),
    ("async def f():\n    return await mcp__hr__gett(id=1)\nawait f()", [(2, "mcp__hr__gett")]),
    ("f = mcp__hr__gett", [(1, "mcp__hr__gett")]),
    ("if x := 1:\n    print(mcp__hr__gett)", [(2, "mcp__hr__gett")]),
    ("try:\n    pass\nexcept ValueError:\n    await mcp__hr__gett()", [(4, "mcp__hr__gett")]),
    ("try:\n    await mcp__hr__gett()\nexcept ToolError:\n    pass", [(2, "mcp__hr__gett")]),
    ("try:\n    await mcp__hr__gett()\nfinally:\n    print(1)", [(2, "mcp__hr__gett")]),
    ("mcp__hr__list()", [(1, "never awaited", 'write "await mcp__hr__list(...)"')]),
    ("try:\n    mcp__hr__list()\nexcept Exception as e:\n    print(e)", [(2, "never awaited")]),
    ("async def main():\n    mcp__hr__get(id=1)\nawait main()", [(2, "never awaited")]),
    ("list_callable_tools()", [(1, 'write "await list_callable_tools(...)"')]),
    ("await mcp__hr__get(7)", [(1, "mcp__hr__get() takes keyword arguments only, e.g. mcp__hr__get(id=...)")]),
    ("await mcp__hr__list({'city': 1})", [(1, "e.g. mcp__hr__list(city=...)")]),
    ("await mcp__hr__mail('a', 'b')", [(1, "mcp__hr__mail(from_=..., to=...)")]),
    ("with open('x', 'w') as f:\n    await mcp__hr__get(1)", [(2, "keyword arguments only")]),
    ("import asyncio\nlock = asyncio.Lock()\nasync with lock:\n    await mcp__hr__get()", [(4, "requires id=...")]),
    ("await mcp__hr__get()", [(1, "mcp__hr__get() requires id=...")]),
    ("await mcp__hr__mail(to='x')", [(1, "requires from_=...")]),
    ("await mcp__hr__get(idd=1)", [(1, "requires id=...")]),
    ("await mcp__hr__odd()", [(1, "mcp__hr__odd() requires id=..., **{'a-b': ...}")]),
    ("await mcp__hr__closed(limits=1)", [(1, "no parameter 'limits'; did you mean limit=...?")]),
    ("await mcp__hr__closed(zzz=1)", [(1, "no parameter 'zzz'; it takes limit, since")]),
    ("await mcp__hr__closed(limits=1, **more)", [(1, "no parameter 'limits'")]),
    ("try:\n    await mcp__hr__get()\nexcept ValueError:\n    pass", [(2, "requires id")]),
    ("import asyncio\nawait asyncio.gather(*(mcp__hr__get() for i in range(3)))", [(2, "requires id")]),
    ("import re\nre.compile('x')\nawait mcp__hr__gett()", [(3, "mcp__hr__gett")]),
    ("import asyncio\nasync def main():\n    await mcp__hr__gett()\nasyncio.run(main())", [(3, "mcp__hr__gett")]),
    (
        "mcp__hr__list()\nawait mcp__hr__get(1)\n\nawait mcp__hr__gett()\nawait mcp__hr__closed(a=1)",
        [(1, "never awaited"), (2, "keyword"), (4, "mcp__hr__gett"), (5, "no parameter 'a'")],
    ),
]

VALID = """
await mcp__hr__get(id=1)
---
await mcp__hr__get(**{'id': 1})
---
await mcp__hr__get(**arguments)
---
await mcp__hr__get(*[], id=1)
---
await mcp__hr__mail(from_='a', to='b')
---
await mcp__hr__mail(**{'from': 'a', 'to': 'b', 'a-b': 1})
---
await mcp__hr__mail(from_='a', to='b', in_=1)
---
await mcp__hr__list(anything=1)
---
await mcp__down__any(1)
---
mcp__down__any()
---
await mcp__down__other(whatever=1)
---
f = mcp__hr__get
await f(id=1)
---
mcp__hr__gett = mcp__hr__get
await mcp__hr__gett(id=1)
---
mcp__hr__gett: object = None
---
async def mcp__hr__get(x): return x
print(await mcp__hr__get(1))
---
def mcp__hr__list(*a): return a
mcp__hr__list(1, 2)
---
def call(mcp__hr__get): return mcp__hr__get(1)
call(print)
---
call = lambda mcp__hr__get: mcp__hr__get(1)
call(print)
---
for mcp__hr__get in [print]: mcp__hr__get(1)
---
print([mcp__x__y for mcp__x__y in range(3)])
---
print({mcp__x__y: 1 for mcp__x__y in range(3)})
---
print([mcp__x__y := 1, mcp__x__y])
---
with open('x', 'w') as mcp__x__y: print(mcp__x__y)
---
try:
    1 / 0
except ZeroDivisionError as mcp__x__y:
    print(mcp__x__y)
---
import json as mcp__x__y
print(mcp__x__y)
---
class mcp__x__y: pass
print(mcp__x__y)
---
class A:
    mcp__x__y = 1
    print(mcp__x__y)
---
def f():
    global mcp__x__y
    mcp__x__y = 1
f()
print(mcp__x__y)
---
del mcp__hr__get
---
mcp__x__y = 1
del mcp__x__y
---
globals()['mcp__x__y'] = 1
print(mcp__x__y)
---
globals()['mcp__hr__get'] = print
mcp__hr__get(1)
---
await globals()['mcp__hr__' + 'get'](id=1)
---
exec('mcp__x__y = 1')
print(mcp__x__y)
---
import builtins
builtins.mcp__x__y = 1
print(mcp__x__y)
---
import sys
sys.modules['__main__'].mcp__x__y = 1
print(mcp__x__y)
---
import __main__
__main__.mcp__x__y = 1
print(mcp__x__y)
---
if 'mcp__x__y' in globals(): await mcp__x__y()
---
if 'mcp__x__y' in await list_callable_tools(): await mcp__x__y()
---
names = await list_callable_tools()
if any(n.startswith('mcp__x__') for n in names):
    await mcp__x__y()
---
status = await server_status()
print(await mcp__x__y() if status.get('x') else 'none')
---
try:
    mcp__x__y
except NameError:
    print('not here')
---
try:
    await mcp__x__y()
except Exception:
    print('not here')
---
try:
    await mcp__x__y()
except:
    print('not here')
---
try:
    await mcp__x__y()
except (ValueError, NameError):
    print('not here')
---
Wrong = NameError
try:
    await mcp__x__y()
except Wrong:
    print('not here')
---
ValueError = NameError
try:
    await mcp__x__y()
except ValueError:
    print('not here')
---
def f():
    try:
        return mcp__x__y
    finally:
        return 1
f()
---
try:
    async def f(): await mcp__x__y()
    await f()
except NameError:
    print('not here')
---
try:
    mcp__x__y
    there = True
except NameError:
    there = False
if there:
    await mcp__x__y()
---
async def f():
    return 1
    await mcp__x__y()
print(await f())
---
while True:
    break
    await mcp__x__y()
---
if 0:
    mcp__x__y = 1
print(lambda: mcp__x__y)
---
async def f(): await mcp__x__y()
try:
    await f()
except NameError:
    print('not here')
---
from contextlib import suppress
with suppress(NameError):
    await mcp__x__y()
---
class Quiet:
    def __enter__(self): pass
    def __exit__(self, *error): return True
with Quiet():
    await mcp__x__y()
---
import asyncio
async def f(): await mcp__x__y()
print(await asyncio.gather(f(), return_exceptions=True))
---
try:
    await mcp__hr__get(1)
except TypeError as error:
    print(error)
---
try:
    await mcp__hr__get()
except ToolError as error:
    print(error)
---
try:
    await mcp__hr__closed(nope=1)
except ToolError:
    pass
---
try:
    mcp__hr__get(id={1, 2})
except TypeError as error:
    print(error)
---
if False:
    await mcp__x__y()
---
import sys
print('done')
sys.exit()
await mcp__x__y()
---
print('mcp__x__y is not called')
---
print(f'{mcp__hr__get.__name__}')
---
# mcp__x__y
---
object().mcp__x__y if False else None
---
dict(mcp__x__y=1)
---
x = {'mcp__x__y': 1}
---
def f(x: 'mcp__x__y') -> 'mcp__x__y': pass
---
def f(x: mcp__x__y): pass
---
tasks = [mcp__hr__get(id=i) for i in range(3)]
for task in tasks: print(await task)
---
import asyncio
print(await asyncio.gather(*map(lambda i: mcp__hr__get(id=i), range(3))))
---
import functools
get = functools.partial(mcp__hr__get, id=1)
print(await get())
---
@staticmethod
async def f(): return await mcp__hr__get(id=1)
---
async def pages():
    yield await mcp__hr__list()
async for page in pages(): print(page)
---
async def f(): return mcp__hr__list()
print(await (await f()))
---
for tool in (mcp__hr__list, mcp__hr__get): print(tool)
---
call = mcp__hr__list()
print(await call)
---
await (mcp__hr__list)()
---
await (mcp__hr__get if 1 else mcp__hr__list)(id=2)
---
_ = [await t for t in [mcp__hr__list()]]
---
assert callable(mcp__hr__list)
---
import asyncio
async with asyncio.Semaphore(2):
    await mcp__hr__get(id=1)
---
inspect_tool = print
inspect_tool('x')
---
def list_callable_tools(): print('mine')
list_callable_tools()
""".strip("\n").split("\n---\n")

NEWER = [
    ((3, 10), "match {'a': 1}:\n    case {'a': mcp__x__y, **mcp__z__rest}: print(mcp__x__y, mcp__z__rest)"),
    ((3, 10), "match [1, 2]:\n    case [mcp__x__y, *mcp__z__rest]: print(mcp__x__y, mcp__z__rest)"),
    ((3, 11), "try:\n    await mcp__x__y()\nexcept* NameError:\n    print(1)"),
    ((3, 12), "def f[mcp__x__y](a: mcp__x__y): return mcp__x__y"),
    ((3, 12), "type mcp__x__y = int\nprint(mcp__x__y)"),
]


class Check(unittest.TestCase):
    # contract: M3
    def test_what_is_found(self):
        for code, expected in WRONG:
            with self.subTest(code):
                mistakes = found(code)
                self.assertEqual([line for line, _, _ in mistakes], [line for line, *_ in expected], mistakes)
                for (_, what, _), (_, *words) in zip(mistakes, expected):
                    for word in words:
                        self.assertIn(word, what)

    # contract: M3
    def test_what_is_left_alone(self):
        self.assertGreater(len(VALID), 60)
        newer = [code for version, code in NEWER if sys.version_info >= version]
        for code in VALID + newer:
            with self.subTest(code):
                compile(code, "<program>", "exec", TOP_LEVEL_AWAIT, True)
                self.assertEqual(found(code), [])

    # contract: M3 M4
    def test_all_findings_are_one_text(self):
        code = "await mcp__hr__get(1)\nmcp__hr__get(id=2)\nawait mcp__hr__gett()"
        self.assertEqual(
            check["describe_mistakes"](found(code), code, OFFER),
            "CheckError: 3 mistakes found before the program started; nothing has run.\n"
            '  File "<program>", line 1\n'
            "    await mcp__hr__get(1)\n"
            "  TypeError: mcp__hr__get() takes keyword arguments only, e.g. mcp__hr__get(id=...)\n"
            '  File "<program>", line 2\n'
            "    mcp__hr__get(id=2)\n"
            '  RuntimeError: mcp__hr__get(...) is never awaited, so it would not run: write "await mcp__hr__get(...)"\n'
            '  File "<program>", line 3\n'
            "    await mcp__hr__gett()\n"
            "  NameError: name 'mcp__hr__gett' is not defined: no server offers such a tool; closest: mcp__hr__get\n"
            "Signatures:\n"
            "  async def mcp__hr__get(*, id: int) -> Any: ...",
        )
        many = "mcp__hr__list()\n" * 500
        self.assertLess(len(check["describe_mistakes"](found(many), many, OFFER)), 4000)

    # contract: M3
    def test_generated_programs_that_are_right_are_not_refused(self):
        """Right calls in every kind of place that a grammar of a few rules gets to."""
        checked = 0
        for seed in range(400):
            code = Grammar(seed).program()
            try:
                compile(code, "<program>", "exec", TOP_LEVEL_AWAIT, True)
            except SyntaxError:  # what newer interpreters understand
                continue
            checked += 1
            with self.subTest(seed=seed, code=code):
                self.assertEqual(found(code), [])
        self.assertGreater(checked, 300)

    # contract: M3
    def test_it_takes_no_time(self):
        code = "rows = [await mcp__hr__get(id=i) for i in range(10) if i]\nprint(sum(r['x'] for r in rows))\n" * 2000
        started = time.process_time()
        self.assertEqual(found(code), [])
        self.assertLess(time.process_time() - started, 20)
        deep = "x = " + "(" * 80 + "mcp__hr__gett" + ")" * 80
        self.assertEqual(len(found(deep)), 1)


class Grammar:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def program(self):
        return "\n".join(self.statement(0, "") for _ in range(self.random.randrange(1, 6)))

    def call(self):
        return self.random.choice(
            [
                "mcp__hr__get(id=1)",
                "mcp__hr__list()",
                "mcp__hr__list(x=2, y=[1])",
                "mcp__hr__mail(from_='a', to='b')",
                "mcp__hr__mail(**{'from': 1, 'to': 2})",
                "mcp__hr__closed(limit=3)",
                "mcp__hr__closed()",
                "mcp__down__other(1)",
                "list_callable_tools()",
                "inspect_tool('mcp__hr__get')",
            ]
        )

    def expression(self, depth):
        if depth > 2:
            return "await " + self.call()
        inner = lambda: self.expression(depth + 1)
        return self.random.choice(
            [
                lambda: "await " + self.call(),
                lambda: f"({inner()}) or ({inner()})",
                lambda: f"[{inner()} for _ in range(2)]",
                lambda: f"{{'k': {inner()}}}",
                lambda: f"(({inner()}) if 1 else ({inner()}))",
                lambda: f"str({inner()})",
                lambda: f"(y := {inner()})",
                lambda: f"f'{{{inner().replace(chr(39), chr(34))}}}'" if sys.version_info >= (3, 12) else inner(),
            ]
        )()

    def statement(self, depth, indent):
        if depth > 2:
            return f"{indent}x = {self.expression(1)}"
        block = lambda: self.statement(depth + 1, indent + "    ")
        return self.random.choice(
            [
                lambda: f"{indent}x = {self.expression(0)}",
                lambda: f"{indent}print({self.expression(0)})",
                lambda: f"{indent}call = {self.call()}\n{indent}x = await call",
                lambda: f"{indent}if 1:\n{block()}\n{indent}else:\n{block()}",
                lambda: f"{indent}for i in range(2):\n{block()}",
                lambda: f"{indent}while True:\n{block()}\n{indent}    break",
                lambda: f"{indent}try:\n{block()}\n{indent}except ToolError as e:\n{block()}",
                lambda: f"{indent}try:\n{block()}\n{indent}finally:\n{block()}",
                lambda: f"{indent}async def f(a=1):\n{block()}\n{indent}await f()",
                lambda: f"{indent}class C:\n{indent}    async def m(self):\n{self.statement(depth + 2, indent + ' ' * 8)}",
                lambda: f"{indent}with open('x', 'w') as h:\n{block()}",
            ]
        )()


if __name__ == "__main__":
    others = [p for p in os.environ.pop("PTC_MCP_TEST_PYTHONS", "").split(os.pathsep) if p]
    if others:
        sys.exit(max(subprocess.call([python, __file__, *sys.argv[1:]]) for python in others))
    unittest.main()
