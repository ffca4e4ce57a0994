# JSON, and frames of it in both directions: the part of the child's half (`bootstrap.py`) that the
# others stand on.
#
# What is imported here is built into the interpreter or loaded by it anyway (but for `_json`): a
# program waits for every import made in these files.

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
