# What a tool is in a program, from its arguments to the reply: part of the child's half
# (`bootstrap.py`).


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
