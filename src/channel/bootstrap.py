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
starts no process. Standard library only, CPython 3.9 or newer.

Here are the program's output, its loop and its run. `check.py`, `frames.py`, `calls.py` and
`failures.py` stand before this text, in the same module.
"""

# A program whose text holds one of these gets an asyncio loop: it names asyncio, or it can come by
# it without naming it.
LOOP_WORDS = ("asyncio", "import_module", "__import__", "exec(", "eval(")

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
