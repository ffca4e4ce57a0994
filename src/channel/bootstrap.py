"""The child's half of the channel: runs one program and carries its calls, output and outcome.

The host starts `python -I -S -B -c <this text>` with fd 0 = frames from the host, fd 1 = frames to
the host, fd 2 = a pipe that is read for start-up failures only. A frame is four bytes of big-endian
length and that many bytes of UTF-8 JSON. (`loader.py` starts the same code without compiling it.)

    from the host   start {code, tools, scope, named, closest, down, underscored, helpers, max_output_bytes},
                    return {id, value}, raise {id, message}
    to the host     ready {version, python}, output {text}, call {id, tool, arguments},
                    help {id, name, arguments}, cancel {id}, emit {value}, done {error}

The program shares this interpreter and can reach everything here. So nothing in this file protects
the host: its checks give a program early, precise errors, and the host decides everything again.
It knows of a tool's schema only what the host says, no budget and no sandbox; it opens no file and
starts no process. `check.py` stands before this text, in the same module.

Standard library only, CPython 3.9 or newer. What is imported at the top is built into the
interpreter or loaded by it anyway (but for `_json`): a program waits for every import made here.
"""

import _signal
import _thread
import builtins
import codecs
import gc
import io
import itertools
import posix
import sys

# Functions look their builtins up here from now on, so that a program that deletes or replaces
# `len` breaks itself and not the frame that reports it.
__builtins__ = dict(vars(builtins))

IN, OUT = 3, 4
PROGRAM = "<program>"
MAX_FRAME = 16 * 1024 * 1024
MAX_DEPTH = 500  # the host refuses JSON beyond 512 levels, its frame included
MAX_ERROR = 64 * 1024
ATOMIC = 4096 if sys.platform == "linux" else 512  # PIPE_BUF: a write up to here is whole or nothing
CHUNK = 64 * 1024
HEAD = 64  # bytes of a reply in which its number stands
CO_COROUTINE = 0x80
ALLOW_TOP_LEVEL_AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, without the import

# A program whose text holds one of these gets an asyncio loop: it names asyncio, or it can come by
# it without naming it.
LOOP_WORDS = ("asyncio", "import_module", "__import__", "exec(", "eval(")

# A program whose text holds one of these may leave a task that failed; to look for one takes 1 ms.
TASK_WORDS = ("_task", "Task", "future", "Future", "executor", "as_completed", "wait(")

# A program whose text holds one of these may show source lines itself; the entry must exist then.
LINECACHE_WORDS = ("traceback", "linecache", "logging", "warn", "pdb")

# Loaded while a ready child waits for its program, one at a time, and no further once the program
# is there. Small steps, since the program waits for the one that has begun: a module that needs
# many comes after them.
PRELOAD = (
    "warnings types operator keyword reprlib collections functools enum _sre copyreg re json os stat"
    " token tokenize linecache textwrap contextlib traceback math datetime _weakrefset threading time"
    " _opcode opcode dis _ast ast inspect heapq selectors select _socket socket weakref string signal"
    " logging concurrent.futures._base concurrent.futures.thread subprocess contextvars typing"
    " asyncio random"
).split()


# ---------------------------------------------------------------------------------------------
# JSON


try:
    from _json import encode_basestring as quoted
    from _json import make_encoder, make_scanner

    class _ScannerOptions:
        strict = True
        object_hook = object_pairs_hook = array_hook = None
        parse_float, parse_int = float, int
        parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": -float("inf")}.get
        memo = {}

    def _no_json(value):
        raise TypeError

    _scan = make_scanner(_ScannerOptions)
    _encode = make_encoder(None, _no_json, quoted, None, ":", ",", False, False, False)

    def parse(text):
        return _scan(text, 0)[0]

    def _compact(value):
        return "".join(_encode(value, 0))

except Exception:  # no accelerator, or one that asks for more than is known here
    import json
    from json import loads as parse

    def quoted(text):
        return json.dumps(text, ensure_ascii=False)

    def _compact(value):
        return json.dumps(value, ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))


_PLAIN = frozenset((str, int, bool, type(None)))

_REMEDIES = {
    "set": "use sorted(...) or list(...)",
    "frozenset": "use sorted(...) or list(...)",
    "bytes": "use .decode()",
    "bytearray": "use .decode()",
    "datetime": "use .isoformat()",
    "date": "use .isoformat()",
    "time": "use .isoformat()",
    "Decimal": "use float(...) or str(...)",
    "Fraction": "use float(...) or str(...)",
    "generator": "use list(...)",
    "map": "use list(...)",
    "filter": "use list(...)",
    "range": "use list(...)",
    "dict_keys": "use list(...)",
    "dict_values": "use list(...)",
    "dict_items": "use dict(...)",
    "coroutine": 'did you forget "await"?',
}


def _fault(value):
    """Why `value` is not JSON, or None. Written without recursion: it is asked about values that
    contain themselves."""
    todo = [(value, None, None, 0)]  # value, its key, the entry of what holds it, depth
    while todo:
        entry = item, _, holder, depth = todo.pop()
        if isinstance(item, float):
            if item - item != 0:
                return f"{float.__repr__(item)}{_where(entry)} is not a JSON number"
            continue
        if isinstance(item, (str, int)) or item is None:
            continue
        if depth > MAX_DEPTH:
            while holder is not None:
                if holder[0] is item:
                    return "the value contains itself"
                holder = holder[2]
            if depth > 2 * MAX_DEPTH:
                return f"the value is nested more than {MAX_DEPTH} levels deep"
        if isinstance(item, dict):
            for key, inner in item.items():
                if not isinstance(key, str):
                    return f"the key {_short(key)}{_where(entry)} is {_a(key)}, and JSON keys are strings"
                if type(inner) not in _PLAIN:
                    todo.append((inner, key, entry, depth + 1))
        elif isinstance(item, (list, tuple)):
            for index, inner in enumerate(item):
                if type(inner) not in _PLAIN:
                    todo.append((inner, index, entry, depth + 1))
        elif isinstance(item, Call):
            return item._mistake(f"is used{_where(entry)}")
        else:
            remedy = _REMEDIES.get(type(item).__name__)
            return f"{_a(item)}{_where(entry)} is not JSON" + (f": {remedy}" if remedy else "")
    return None


def _is_flat(value):
    """Whether `value` is quickly known to be sound: a plain one, or a dict of those by strings."""
    if type(value) is not dict:
        return type(value) in _PLAIN
    for key, inner in value.items():
        if type(inner) not in _PLAIN or type(key) is not str:
            return False
    return True


def _depth(value):
    """How deep `value`, known to be finite, is nested."""
    level, depth = [value], 0
    while level:
        depth += 1
        level = [
            inner
            for item in level
            if isinstance(item, (dict, list, tuple))
            for inner in (item.values() if isinstance(item, dict) else item)
            if type(inner) not in _PLAIN
        ]
    return depth


def _where(entry):
    path = []
    while entry[2] is not None:
        path.append(f"[{_short(entry[1])}]")
        entry = entry[2]
    if len(path) > 8:
        path[4:-4] = ["..."]
    return " at " + "".join(reversed(path)) if path else ""


def _short(value):
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else text[:57] + "..."


def _a(value):
    name = type(value).__name__
    return ("an " if name[:1] in "aeiouAEIOU" else "a ") + name


def encoded(value, who):
    """`value` as compact JSON in UTF-8; TypeError, naming `who` and the reason, if it is not JSON."""
    reason = None
    try:
        data = _compact(value).encode()
    except UnicodeEncodeError:
        reason = "a string holds a lone surrogate, which is no Unicode text"
    except MemoryError:
        raise
    except Exception as error:
        try:
            reason = _fault(value)
        except Exception:
            pass
        reason = reason or str(error) or type(error).__name__
    else:
        # The encoder turns keys such as 1 and None into strings; that would hide a mistake.
        if not _is_flat(value):
            reason = _fault(value)
            if reason is None and len(data) > 2 * MAX_DEPTH and _depth(value) > MAX_DEPTH:
                reason = f"the value is nested more than {MAX_DEPTH} levels deep"
    if reason:
        raise TypeError(f"{who}: {reason}")
    return data


# ---------------------------------------------------------------------------------------------
# Frames out


_ALL_SIGNALS = _signal.valid_signals()


class _Outgoing:
    lock = _thread.RLock()
    writing = False  # true while this lock's holder is inside a frame
    waiting = []  # frames that a signal handler made in the middle of another frame
    closed = False  # after `done`, and in a forked process
    room = 0  # bytes of output that the host still wants
    mid_line = False  # the output does not end in a line's end


def send(payload):
    """Writes one frame, whole, whichever thread it comes from."""
    frame = len(payload).to_bytes(4, "big") + payload
    out = _Outgoing
    if out.closed:
        return
    with out.lock:
        if out.closed:
            return
        if out.writing:
            out.waiting.append(frame)
            return
        out.writing = True
        try:
            _write(frame)
            while out.waiting:
                _write(out.waiting.pop(0))
        finally:
            out.writing = False


def send_last(payload):
    """Writes the frame after which nothing is sent. The others are told before the lock is asked
    for: threads that print without end would hold on to it."""
    _Outgoing.closed = True
    with _Outgoing.lock:
        _write(len(payload).to_bytes(4, "big") + payload)


def _write(frame, write=posix.write):
    if len(frame) <= ATOMIC:
        write(OUT, frame)
        return
    # Half a frame would end the run, so no signal handler may raise in the middle of one.
    held = _signal.pthread_sigmask(_signal.SIG_BLOCK, _ALL_SIGNALS)
    try:
        rest = memoryview(frame)
        while rest:
            rest = rest[write(OUT, rest) :]
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, held)


def _leave_fork():
    """In a process that the program forked: the channel belongs to its parent."""
    _Outgoing.closed = True
    _Outgoing.lock = _thread.RLock()
    for fd in (IN, OUT):
        try:
            posix.close(fd)
        except OSError:
            pass


# ---------------------------------------------------------------------------------------------
# Frames in


class _Incoming:
    reading = _thread.allocate_lock()  # held by whoever reads fd IN
    data = b""  # read, and not yet part of a frame that was handed on
    body = None  # the frame that is being read, if it is longer than `data`
    size = filled = 0  # of that frame, and how much of it was read


def receive(read=posix.read):
    """The next frame's value; blocks until it is there. State is kept between reads, so that an
    exception out of a signal handler loses nothing."""
    inc = _Incoming
    while inc.body is None:
        data = inc.data
        if len(data) >= 4:
            end = 4 + int.from_bytes(data[:4], "big")
            if len(data) >= end:
                inc.data = data[end:]
                try:
                    return parse(str(data[4:end], "utf-8"))
                except BaseException as error:
                    return _unreadable(data[4:], error)
            if len(data) >= 4 + HEAD:
                inc.size, inc.filled = end - 4, len(data) - 4
                try:
                    body = bytearray(end - 4)
                except MemoryError:
                    body = bytearray(HEAD + ATOMIC)  # all that comes after the head goes over itself
                    data = data[: 4 + HEAD]
                body[: len(data) - 4] = data[4:]
                inc.data, inc.body = b"", body
                break
        more = read(IN, CHUNK)
        if not more:
            posix._exit(1)  # the host is gone, and with it all sense in going on
        inc.data += more
    view = memoryview(inc.body)
    fits = len(view) == inc.size
    while inc.filled < inc.size:
        start = inc.filled if fits else HEAD
        got = posix.readv(IN, [view[start : start + inc.size - inc.filled]])
        if not got:
            posix._exit(1)
        inc.filled += got
    view.release()
    body, inc.body = inc.body, None
    head = bytes(body[:HEAD])
    # A large value is all new objects and no garbage: collections while it grows find nothing, nor
    # would the one right after it, which looks at young objects. These two calls make them old ones,
    # without a look at any; they would undo what a program has frozen itself.
    collecting = gc.isenabled()
    gc.disable()
    try:
        if not fits:
            raise MemoryError
        text = str(body, "utf-8")
        del body
        return parse(text)
    except BaseException as error:
        return _unreadable(head, error)
    finally:
        if collecting:
            if gc.get_freeze_count() == 0:
                gc.freeze()
                gc.unfreeze()
            gc.enable()


def _unreadable(head, error):
    """Stands for a reply that could not be taken in, mostly for want of memory: whoever waits for it
    gets the exception. The host writes the number before what can be long."""
    number = int(head.partition(b'"id":')[2].partition(b",")[0])
    return {"type": "unreadable", "id": number, "error": error.with_traceback(None)}


def _frame_is_buffered():
    data = _Incoming.data
    return len(data) >= 4 and len(data) - 4 >= int.from_bytes(data[:4], "big")


# ---------------------------------------------------------------------------------------------
# Calls


class ToolError(Exception):
    """A call of a tool failed; the message says which and why."""


ToolError.__module__ = "builtins"

_numbers = itertools.count(1)
_waiting = {}  # id of a call in flight → (its loop, the future) or (None, the blocking waiter)
_unawaited = {}  # id(call) → call, for calls that were made and not yet awaited
_places = set()  # (tool, line) of those that were awaited


class _Waiter:
    """A thread that blocks for one reply."""

    __slots__ = ("reply", "bell")

    def __init__(self):
        self.reply = None
        self.bell = _thread.allocate_lock()
        self.bell.acquire()


_other_threads = _thread._count


def _running_loop(modules=sys.modules):
    get = getattr(modules.get("asyncio.events"), "_get_running_loop", None)
    return get() if get else None


def _exchange(kind, request):
    """Sends one request and waits for its reply: the steps behind every call. Inside a running
    loop, whichever it is, it waits as a future; elsewhere it blocks."""
    number = next(_numbers)
    payload = b'{"type":"%s","id":%d%s' % (kind, number, request)
    if _Outgoing.closed:
        raise RuntimeError("tools can be called in the program's own process only")
    loop = _running_loop()
    try:
        if loop is None and not _waiting and not _other_threads():
            _waiting[number] = None, None
            send(payload)
            reply = _receive_alone(number)
        elif loop is None:
            waiter = _Waiter()
            _waiting[number] = None, waiter
            send(payload)
            _block(waiter)
            reply = waiter.reply
        else:
            future = loop.create_future()
            _waiting[number] = loop, future
            if not getattr(loop, "_hears_the_channel", False):
                loop.add_reader(IN, _on_readable)
                loop._hears_the_channel = True
            send(payload)
            reply = yield from future
    except BaseException:
        # Cancelled, or interrupted by a signal handler: nobody wants the answer any more.
        if _waiting.pop(number, None) is not None:
            send(b'{"type":"cancel","id":%d}' % number)
        raise
    if reply["type"] == "return":
        return reply["value"]
    raise reply.pop("error", None) or ToolError(reply["message"])


def _receive_alone(number):
    """The reply to the only request there is, as it is for most programs most of the time."""
    with _Incoming.reading:
        while True:
            frame = receive()
            if frame.get("id") == number:
                del _waiting[number]
                return frame
            _hand_on(frame)


def _block(waiter):
    """Waits for a reply without a loop. One thread at a time reads and hands on what is not its own;
    the others sleep until their reply is there or nobody reads any more."""
    reading = _Incoming.reading
    while waiter.reply is None:
        if reading.acquire(False):
            try:
                while waiter.reply is None:
                    _hand_on(receive())
            finally:
                reading.release()
            for loop, other in list(_waiting.values()):
                if loop is None:
                    _ring(other)
                    break
        else:
            waiter.bell.acquire(True, 0.02)


def _ring(waiter):
    try:
        waiter.bell.release()
    except RuntimeError:  # it rings already
        pass


def _hand_on(frame):
    loop, target = _waiting.pop(frame.get("id"), (None, None))
    if target is None:
        return  # the reply to a call that was given up
    if loop is None:
        target.reply = frame
        _ring(target)
    elif loop is _running_loop():
        _settle(target, frame)
    else:
        try:
            loop.call_soon_threadsafe(_settle, target, frame)
        except RuntimeError:  # that loop was closed
            pass


def _settle(future, frame):
    if not future.done():
        future.set_result(frame)


def _on_readable():
    """Called by every loop in which a call was awaited. What another thread reads is not waited for."""
    if not _Incoming.reading.acquire(False):
        return
    try:
        if _other_threads() and not _frame_is_buffered():
            from select import select

            if not select([IN], [], [], 0)[0]:
                return
        _hand_on(receive())
        while _frame_is_buffered():
            _hand_on(receive())
    finally:
        _Incoming.reading.release()


def _forgotten(use, otherwise=None):
    """A method that says so; where asyncio itself may ask, only if it was the program that asked."""

    def method(self, *_, **__):
        if otherwise is not None and sys._getframe(1).f_code.co_filename != PROGRAM:
            return otherwise
        raise TypeError(self._mistake(use))

    return method


class Call:
    """What calling a tool returns: awaitable like a coroutine, accepted wherever asyncio takes one,
    and quick to explain itself wherever a result was meant."""

    __slots__ = ("_name", "_steps", "_line", "__weakref__")

    def __init__(self, name, steps, line):
        self._name = name
        self._steps = steps
        self._line = line
        _unawaited[id(self)] = self

    def __await__(self):
        if _unawaited.pop(id(self), None) is None:
            raise RuntimeError(f"{self._name}(...) was already awaited: keep its result in a variable")
        _places.add((self._name, self._line))
        return self._steps

    def send(self, value):
        if _unawaited.pop(id(self), None) is not None:
            _places.add((self._name, self._line))
        return self._steps.send(value)

    def throw(self, *exception):
        _unawaited.pop(id(self), None)
        return self._steps.throw(*exception)

    def close(self):
        _unawaited.pop(id(self), None)
        self._steps.close()

    def _mistake(self, use):
        return f'{self._name}(...) {use} before it was awaited: did you forget "await"? Write: await {self._name}(...)'

    def __repr__(self):
        return f"<call of {self._name}(...), not awaited>"

    def __getattr__(self, name):
        if name in ("__name__", "__qualname__"):
            return self._name
        if name[:2] == "__" or name[:3] in ("cr_", "gi_", "ag_"):
            raise AttributeError(name)  # asked by tools that look at coroutines
        raise AttributeError(self._mistake(f"was asked for .{name}"))

    __hash__ = object.__hash__
    __str__ = __format__ = _forgotten("is used as text")
    __getitem__ = __setitem__ = __delitem__ = _forgotten("is subscripted")
    # No __next__: asyncio would step the call by it.
    __iter__ = __aiter__ = __reversed__ = _forgotten("is iterated over")
    __contains__ = _forgotten("is searched")
    __len__ = _forgotten("is measured")
    __bool__ = _forgotten("is tested", True)
    __eq__ = __ne__ = _forgotten("is compared", NotImplemented)
    __lt__ = __le__ = __gt__ = __ge__ = _forgotten("is compared")
    __enter__ = __aenter__ = __exit__ = __aexit__ = _forgotten('is used by "with"')
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _forgotten("is used in arithmetic")
    __truediv__ = __rtruediv__ = __or__ = __ror__ = __int__ = __float__ = _forgotten("is used in arithmetic")
    __call__ = _forgotten("is called")


# Whatever else refuses it names the type, so let the name say it.
Call.__name__ = Call.__qualname__ = "call without await"


async def _shape(**arguments): ...


class Function:
    """A tool or a helper, as the program sees it. Not a real function, since those that are
    `async def` return coroutines, and a forgotten `await` then ends in errors that do not say so;
    but `inspect` takes it for one."""

    __class__ = property(lambda self: type(_shape))
    __code__ = _shape.__code__
    __defaults__ = __kwdefaults__ = __doc__ = None
    __annotations__ = {}
    __module__ = "__main__"
    __slots__ = "__name__", "__dict__", "__weakref__"

    def __init__(self, name):
        self.__name__ = name  # and nothing else: there may be thousands of them

    def __getattr__(self, attribute):
        if attribute == "__qualname__":
            return self.__name__
        raise AttributeError(f"function {self.__name__} has no attribute {attribute!r}")

    def __repr__(self):
        return f"<function {self.__name__}>"

    def __call__(self, /, *positional, **arguments):
        name = self.__name__
        if positional:
            first = positional[0]
            if len(positional) == 1 and name == "inspect_tool" and not arguments:
                arguments["tool_name"] = first
            else:
                example = "query"
                if isinstance(first, dict) and first:
                    example = next(iter(first))
                raise TypeError(f"{name}() takes keyword arguments only, e.g. {name}({example}=...)")
        for key in arguments:
            if key[-1:] == "_" and key[:-1] in KEYWORDS:
                arguments = _without_underscores(name, arguments, _underscored.get(name, ()))
                break
        data = encoded(arguments, f"{name}()")
        if len(data) > MAX_FRAME - 1024:
            raise ValueError(f"{name}(): its arguments are {len(data)} bytes of JSON; the limit is {MAX_FRAME - 1024}")
        request = self._REQUEST % (name.encode(), data)
        caller = sys._getframe(1)
        line = caller.f_lineno if caller.f_code.co_filename == PROGRAM else None
        return Call(name, _exchange(self._KIND, request), line)


class Tool(Function):
    __slots__ = ()
    _KIND = b"call"
    _REQUEST = b',"tool":"%s","arguments":%s}'


class Helper(Function):
    __slots__ = ()
    _KIND = b"help"
    _REQUEST = b',"name":"%s","arguments":%s}'


_underscored = {}  # tool → parameters that really are called `from_` and the like


def _without_underscores(name, arguments, own):
    plain = {}
    for key, value in arguments.items():
        if key[-1:] == "_" and key[:-1] in KEYWORDS and key not in own:
            key = key[:-1]
            if key in arguments:
                raise TypeError(f"{name}() got both {key!r} and '{key}_', which mean the same parameter")
        plain[key] = value
    return plain


class _Emitted:
    """What `emit` returns: nothing, but awaiting it does no harm."""

    __slots__ = ()

    def __await__(self):
        return iter(())

    def __repr__(self):
        return "None"


def _emit_within(limit):
    limit = min(limit, MAX_FRAME - 1024)

    def emit(value):
        """Sets the program's result, a JSON value; the last call wins."""
        data = encoded(value, "emit()")
        if len(data) > limit:
            raise ValueError(
                f"emit(): the value is {len(data)} bytes of JSON; the limit is {limit} (execution.max_output_bytes)"
            )
        send(b'{"type":"emit","value":%s}' % data)
        return _Emitted()

    emit.__module__ = "__main__"
    emit.__qualname__ = "emit"
    return emit


# ---------------------------------------------------------------------------------------------
# Output


class _Output(io.BufferedIOBase):
    """The bytes beneath `sys.stdout` and `sys.stderr`."""

    PIECE = 1024 * 1024  # JSON makes at most six bytes of one

    def __init__(self, name):
        self.name = name
        self.mode = "wb"
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def writable(self):
        return True

    def write(self, data):
        if self.closed:
            raise ValueError("I/O operation on closed file")
        if type(data) is not bytes:
            data = memoryview(data).tobytes()
        out = _Outgoing
        if out.room > 0:
            kept = data[: out.room]
            out.room -= len(kept)
            for start in range(0, len(kept), self.PIECE):
                self._send(self._decode(kept[start : start + self.PIECE]))
        return len(data)

    def end(self):
        self._send(self._decode(b"", True))

    def _send(self, text):
        if text:
            _Outgoing.mid_line = text[-1] != "\n"
            send(b'{"type":"output","text":%s}' % quoted(text).encode())


def _text_over(name):
    return io.TextIOWrapper(_Output(name), "utf-8", "backslashreplace", newline="\n", write_through=True)


# ---------------------------------------------------------------------------------------------
# Failures as text


class _Mistakes(Exception):
    """What the check before the run has found, as the text of the error."""


def _describe(error, source, start):
    if type(error) is _Mistakes:
        return _bounded(error.args[0])
    if isinstance(error, SystemExit):
        try:
            if error.code is None or isinstance(error.code, int) and error.code == 0:
                return None
            return _bounded(f"SystemExit: {error.code}")
        except BaseException:
            return f"SystemExit: {_a(error.code)}"
    try:
        text = _with_traceback(error, source)
    except BaseException:
        pass
    else:
        try:
            advice = _advice(error, start["tools"])
        except BaseException:
            advice = None
        return _bounded(text.rstrip("\n") + (f"\nHint: {advice}" if advice else ""))
    try:
        return _bounded(_by_hand(error, source))
    except BaseException:
        return f"{type(error).__name__}: (its text could not be made)"


def _advice(error, tools):
    """What a program should have written, where its error is of a kind that models make."""
    message = str(error)
    if isinstance(error, ImportError):
        name = (error.name or "").split(".")[0]
        if name in ("mcp", "fastmcp", "tools") or name[:5] == "mcp__":
            return "nothing has to be imported: every tool is a global async function, await mcp__<server>__<tool>(...)"
        if isinstance(error, ModuleNotFoundError) and name not in getattr(sys, "stdlib_module_names", ()):
            return "there are no packages here, only Python's standard library and the tools"
    if type(error) is NameError:  # an UnboundLocalError is about a variable of the program's own
        return _advice_on_name(message.split("'")[1], tools)
    if isinstance(error, SyntaxError):
        return _advice_on_syntax(error)
    if isinstance(error, TypeError) and "await" in message and ("Tool" in message or "Helper" in message):
        return "a tool has to be called: await mcp__<server>__<tool>(...)"
    if isinstance(error, TypeError) and message.startswith("the JSON object must be str"):
        return "what a tool returns is parsed already: leave json.loads out"
    if isinstance(error, KeyError) and error.args in (("content",), ("structuredContent",), ("text",)):
        return "a tool returns its value itself, parsed, without content blocks: print one to see its shape"
    if isinstance(error, AttributeError) and message.startswith("'dict' object has no attribute '"):
        name = message.split("'")[3]
        return f'the value is a dict: write ["{name}"]'
    if isinstance(error, (TypeError, AttributeError)) and (
        "'coroutine'" in message or "type coroutine is not JSON" in message
    ):
        return 'did you forget "await"? An async function gives its value only when it is awaited: await name(...)'
    if isinstance(error, RuntimeError) and message == "no running event loop":
        return "this program has no top-level await, so no event loop runs: await what was started, e.g. await asyncio.gather(...)"
    if isinstance(error, MemoryError):
        return "the limit of memory is execution.max_memory_bytes: keep less at a time"
    if isinstance(error, OSError) and error.errno in (27, 28):
        return "the limit of the scratch directory, and of one file, is execution.max_scratch_bytes"
    if isinstance(error, EOFError):
        return "there is no input here: everything has to stand in the program"
    return None


def _advice_on_name(name, tools):
    if name[:5] == "mcp__":
        near = nearest(name, tools)
        near = [near] if near else []
    else:
        near = [tool for tool in tools if tool.endswith(f"__{name}")]
        near = near or [tool for tool in tools if tool.startswith(f"mcp__{name}__")]
    if near:
        return f"tools are called by their whole names, e.g. await {', '.join(near[:3])}(...)"
    if name in ("mcp", "tools", "tool", "client", "session", "call_tool", "use_mcp_tool"):
        return "tools are called by their whole names: await mcp__<server>__<tool>(...)"
    return None


def _advice_on_syntax(error):
    if "'await' outside" in error.msg:
        return 'a function that awaits is an "async def", and its calls are awaited'
    if "'return' outside" in error.msg:
        return "print(...) or emit(...) gives the result; sys.exit() ends the program early"
    text = "".join((error.text or "").split())
    for keyword in KEYWORDS:
        for before in "(,":
            if f"{before}{keyword}=" in text and f"{before}{keyword}==" not in text:
                return f"a parameter named like a keyword takes a trailing underscore: {keyword}_=..."
    return None


def _with_traceback(error, source):
    import traceback

    _remember(source)
    if isinstance(error, SyntaxError) and error.text is None and error.lineno and error.filename == PROGRAM:
        # What the compiler itself finds comes without its line, unlike what the parser finds.
        error.text = "".join(_lines(source)[error.lineno - 1 : error.lineno]) or None
    whole = traceback.TracebackException(type(error), error, error.__traceback__, lookup_lines=False)
    todo, seen = [whole], set()
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.stack[:] = [frame for frame in one.stack if frame.filename == PROGRAM]
        todo += [one.__cause__, one.__context__, *(getattr(one, "exceptions", None) or ())]
    return "".join(whole.format())


def _by_hand(error, source):
    """For a program that broke what `traceback` needs."""
    lines = _lines(source)
    text = ["Traceback (most recent call last):"]
    step = error.__traceback__
    while step is not None and len(text) < 200:
        if step.tb_frame.f_code.co_filename == PROGRAM:
            text.append(f'  File "{PROGRAM}", line {step.tb_lineno}, in {step.tb_frame.f_code.co_name}')
            if 0 < step.tb_lineno <= len(lines):
                text.append("    " + lines[step.tb_lineno - 1].strip())
        step = step.tb_next
    try:
        message = str(error)
    except BaseException:
        message = "<exception str() failed>"
    text.append(type(error).__name__ + (f": {message}" if message else ""))
    return "\n".join(text)


def _bounded(text):
    text = text.rstrip("\n")
    if len(text) > MAX_ERROR:
        head, tail = MAX_ERROR // 4, MAX_ERROR // 2
        left_out = len(text) - head - tail
        text = f"{text[:head]}\n... ({left_out} characters left out) ...\n{text[-tail:]}"
    return text


def _remember(source):
    import linecache

    # Each with its end, the last one too: `traceback` places its carets by it.
    lines = [line + "\n" for line in _lines(source)]
    linecache.cache[PROGRAM] = len(source), None, lines, PROGRAM


def _lines(source):
    """As the compiler counts them; `splitlines` would also end one at a form feed, for example."""
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _note(text):
    """Says something of ours in the output; the program may have broken or closed what it goes through."""
    try:
        start = "\n" if _Outgoing.mid_line else ""
        _streams[1].write(f"{start}Note: {text}\n")
    except BaseException:
        pass


def _forgotten_awaits(source, scope):
    """Nothing failed, but something that was written was never done: that is no success. Where a call
    in the same place was awaited, the await was not forgotten: the program made calls ahead and then
    did not need them all. It is told so and has not failed."""
    found, spare = [], {}
    for call in list(_unawaited.values()):
        place = call._name, call._line
        if call._line is not None and place in _places:
            spare[place] = spare.get(place, 0) + 1
        else:
            found.append(place)
    found += _lost_coroutines
    for name, value in list(scope.items()):
        if type(value) is _Coroutine and _is_fresh(value):
            found.append((value.__name__, None))
    if not found:
        for (name, line), number in spare.items():
            _note(f"line {line}: calls of {name}(...) that were never awaited, and so did not run: {number}")
        return None
    lines = _lines(source)
    text = []
    for name, line in found[:10]:
        if line is not None and 0 < line <= len(lines):
            text.append(f'  File "{PROGRAM}", line {line}\n    {lines[line - 1].strip()}')
        text.append(f'RuntimeError: {name}(...) was never awaited, so it did not run: write "await {name}(...)"')
    if len(found) > 10:
        text.append(f"... and {len(found) - 10} more")
    return _bounded("\n".join(text))


def _tell_of_lost_errors(known, source, start):
    """asyncio tells of an error that nobody asked for when its task is freed, and at the end of a
    program nothing is. To find them among all objects runs none of the program's finalisers."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not any(word in source for word in TASK_WORDS):
        return
    task, future = asyncio.Task, asyncio.Future
    found = [one for one in gc.get_objects() if type(one) is task or type(one) is future]
    for error in [one._exception for one in found if one._log_traceback][:10]:
        if error is not known and not isinstance(error, SystemExit):
            _note(f"a background task failed and was not awaited:\n{_describe(error, source, start)}")


_lost_coroutines = []
_probe = _shape()
_Coroutine = type(_probe)
_probe.close()
del _probe


def _is_fresh(coroutine):
    frame = coroutine.cr_frame
    if frame is None or coroutine.cr_running:
        return False
    suspended = getattr(coroutine, "cr_suspended", None)  # 3.11 and newer
    return frame.f_lasti == -1 if suspended is None else not suspended


def _watch_for_lost_coroutines():
    import warnings

    warn = warnings._warn_unawaited_coroutine

    def lost(coroutine):
        if coroutine.cr_code.co_filename != PROGRAM:
            warn(coroutine)
        elif len(_lost_coroutines) < 100:
            _lost_coroutines.append((coroutine.__name__, None))

    warnings._warn_unawaited_coroutine = lost


# ---------------------------------------------------------------------------------------------
# asyncio


def _import_asyncio(source):
    """asyncio without `ssl`, which costs 10 ms and 4 MiB, unless the program speaks of it."""
    modules = sys.modules
    if "asyncio" not in modules and "ssl" not in source:
        modules.setdefault("ssl", None)
    try:
        import asyncio
    finally:
        if modules.get("ssl", True) is None:
            del modules["ssl"]
    if "ssl" in source and asyncio.base_events.ssl is None:
        try:
            import ssl
        except ImportError:
            return asyncio
        for name in ("base_events", "selector_events", "sslproto"):
            modules["asyncio." + name].ssl = ssl
        modules["asyncio.sslproto"].SSLAgainErrors = ssl.SSLWantReadError, ssl.SSLSyscallError
    return asyncio


def _allow_nested_runs(asyncio):
    """`asyncio.run(main())` and `loop.run_until_complete(main())` inside the running program: asyncio
    refuses, so they run in a thread of their own, with a loop of their own, while the caller waits."""

    def nested(function):
        def run(*args, **kwargs):
            if _running_loop() is None:
                return function(*args, **kwargs)
            return _in_thread(function, args, kwargs)

        run.__name__, run.__qualname__, run.__doc__ = function.__name__, function.__qualname__, function.__doc__
        run.__wrapped__ = function
        return run

    loop_class = asyncio.base_events.BaseEventLoop
    until_complete = loop_class.run_until_complete

    def run_until_complete(self, future):
        running = _running_loop()
        if running is None:
            return until_complete(self, future)
        if self is not running:
            return _in_thread(until_complete, (self, future), {})
        if asyncio.isfuture(future):
            raise RuntimeError("the program already runs inside this event loop: await the task instead")
        return asyncio.run(future)

    asyncio.run = nested(asyncio.run)
    asyncio.runners.run = asyncio.run
    if hasattr(asyncio, "Runner"):
        asyncio.Runner.run = nested(asyncio.Runner.run)
    loop_class.run_until_complete = run_until_complete


def _in_thread(function, args, kwargs):
    from contextvars import copy_context

    context, done, outcome = copy_context(), _thread.allocate_lock(), []

    def body():
        try:
            outcome.append((context.run(function, *args, **kwargs), None))
        except BaseException as error:
            outcome.append((None, error))
        finally:
            done.release()

    done.acquire()
    _thread.start_new_thread(body, ())
    done.acquire()
    value, error = outcome.pop()
    if error is not None:
        try:
            raise error
        finally:
            del error
    return value


# ---------------------------------------------------------------------------------------------
# The run


def _take_channel():
    """Moves the channel off the descriptors that a program knows, before any of it runs."""
    posix.dup2(0, IN, False)
    posix.dup2(1, OUT, False)
    try:
        null = posix.open("/dev/null", posix.O_RDWR | posix.O_CLOEXEC)
        ends = null, null
        spare = {null}
    except OSError:
        ends = posix.pipe()
        spare = set(ends)
    posix.dup2(ends[0], 0)
    posix.dup2(ends[1], 1)
    posix.dup2(ends[1], 2)
    for fd in spare:
        posix.close(fd)
    if hasattr(posix, "register_at_fork"):
        posix.register_at_fork(after_in_child=_leave_fork)


def _preload():
    """Imports what programs import most while no program is there. Returns once one is."""
    incoming = _Incoming
    try:
        posix.set_blocking(IN, False)
    except OSError:
        return
    try:
        for name in PRELOAD:
            try:
                data = posix.read(IN, CHUNK)
                if not data:
                    posix._exit(0)
                incoming.data = data
                return
            except BlockingIOError:
                pass
            try:
                if name == "asyncio":
                    _import_asyncio("")
                else:
                    __import__(name)
            except Exception:  # not in this build, or not to be seen from here: so the program is told
                pass
    finally:
        posix.set_blocking(IN, True)


def _scope_for(start):
    module = type(sys)("__main__")
    scope = module.__dict__
    scope["__builtins__"] = builtins
    tools = start["tools"] if start["scope"] is None else start["scope"]
    for kind, names in (Tool, tools), (Helper, start["helpers"]):
        scope.update(zip(names, map(kind, names)))
    scope["emit"] = _emit_within(start["max_output_bytes"])
    sys.modules["__main__"] = module
    return scope


def _steps_of(coroutine):
    """Runs the program's coroutine and returns the exception that it ended by, if that is a
    StopIteration: at the top level, interpreters since 3.12 take one for a normal end."""
    step, argument = coroutine.send, None
    while True:
        try:
            wanted = step(argument)
        except StopIteration as end:
            return end if end.__traceback__.tb_next else None
        try:
            step, argument = coroutine.send, (yield wanted)
        except BaseException as thrown:
            step, argument = coroutine.throw, thrown


class _Steps:
    """`_steps_of` in a form that `await` takes."""

    def __init__(self, coroutine):
        self.coroutine = coroutine

    def __await__(self):
        return _steps_of(self.coroutine)


def _drive(coroutine):
    """Runs a program that needs no loop: its calls block, so it never has to wait here."""
    steps = _steps_of(coroutine)
    step, argument = steps.send, None
    while True:
        try:
            step(argument)
        except StopIteration as end:
            return end.value
        step = steps.throw
        argument = RuntimeError('this "await" needs an event loop: put "import asyncio" at the top of the program')


def _check(source, start):
    """Raises what is wrong for certain, before anything runs (`check.py`). Should the check itself
    fail, the program runs as it is."""
    if "mcp__" not in source and not any(name in source for name in start["helpers"]):
        return
    stderr, sys.stderr = sys.stderr, None  # the parser's warnings were told by the first compilation
    try:
        mistakes = find_mistakes(source, PROGRAM, ALLOW_TOP_LEVEL_AWAIT, start)
        text = describe_mistakes(mistakes, source, start) if mistakes else None
    except Exception:
        return
    finally:
        sys.stderr = stderr
    if text:
        raise _Mistakes(text)


def _execute(source, scope, start):
    """Runs the program; what it fails by is raised or returned."""
    code = compile(source, PROGRAM, "exec", ALLOW_TOP_LEVEL_AWAIT, True)
    _check(source, start)
    if "linecache" in sys.modules or any(word in source for word in LINECACHE_WORDS):
        _remember(source)
    if "async def" in source:
        _watch_for_lost_coroutines()
    asyncio = None
    if any(word in source for word in LOOP_WORDS):
        asyncio = _import_asyncio(source)
        _allow_nested_runs(asyncio)
    if not code.co_flags & CO_COROUTINE:
        if asyncio is not None and "get_event_loop" in source:
            asyncio.set_event_loop(asyncio.new_event_loop())
        exec(code, scope)
    elif asyncio is None:
        return _drive(eval(code, scope))
    else:

        async def main():
            # Ends the process from within: whatever else the loop still holds gets no turn.
            error = None
            try:
                error = await _Steps(eval(code, scope))
            except BaseException as failure:
                error = failure
            _finish(error, source, scope, start)

        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.run_until_complete(main())
    return None


def _finish(error, source, scope, start):
    """Reports the outcome and ends the process, so that hooks, threads and finalisers do nothing."""
    try:
        _signal.pthread_sigmask(_signal.SIG_BLOCK, _ALL_SIGNALS)
        sys.settrace(None)
        sys.setprofile(None)
        sys.setrecursionlimit(max(1000, sys.getrecursionlimit()))
        text = None if error is None else _describe(error, source, start)
        if text is None:
            text = _forgotten_awaits(source, scope)
        try:
            _tell_of_lost_errors(error, source, start)
        except BaseException:
            pass
        for stream in _streams:
            try:
                stream.flush()
                stream.buffer.end()
            except BaseException:
                pass
        if text is not None:
            text = quoted(text.encode("utf-8", "backslashreplace").decode())
        if not _Outgoing.closed:  # as it is in a process that the program forked
            send_last(b'{"type":"done","error":%s}' % (text or "null").encode())
    finally:
        posix._exit(0)


_streams = []


def _main():
    _take_channel()
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)  # integers of any size come and go exactly
    builtins.ToolError = ToolError
    builtins.exit = builtins.quit = sys.exit
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BytesIO(), "utf-8")
    sys.stdout = sys.__stdout__ = _text_over("<stdout>")
    sys.stderr = sys.__stderr__ = _text_over("<stderr>")
    _streams.extend((sys.stdout, sys.stderr))
    sys.argv = [PROGRAM]
    send(b'{"type":"ready","version":1,"python":"%d.%d.%d"}' % sys.version_info[:3])
    _preload()
    start = receive()
    source = start["code"]
    _Outgoing.room = start["max_output_bytes"] + 4  # the host sees that there was more
    _underscored.update(start["underscored"])
    scope = {}
    error = None
    try:
        scope = _scope_for(start)
        error = _execute(source, scope, start)
    except BaseException as failure:
        error = failure
    try:
        _finish(error, source, scope, start)
    except BaseException:
        # A trace function or a signal handler of the program raised on the way in: the former is
        # unset by that, and the way in is short.
        _finish(error, source, scope, start)


# Called from foreign globals, since 3.9 hands the caller's builtins on within one module.
exec("run()", {"run": _main})
