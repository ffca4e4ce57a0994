# What a program is told of its failures, as text: part of the child's half (`bootstrap.py`).

# A program whose text holds one of these may leave a task that failed; to look for one takes 1 ms.
TASK_WORDS = ("_task", "Task", "future", "Future", "executor", "as_completed", "wait(")


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
