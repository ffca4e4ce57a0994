# /// script
# requires-python = ">=3.9"
#
# [tool.ptc-mcp.escape]
# goal = "use what the language has"
# evidence = "works"
#
# [tool.ptc-mcp.escape.expect]
# namespaces = "works"
# chroot = "works"
# seatbelt = "works"
# none = "works"
# ///
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import inspect
import itertools
import pickle
import typing


@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: int = 0


class Colour(enum.Enum):
    RED = 1


@functools.lru_cache(None)
def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


assert fibonacci(80) == 23416728348467685 and Point(1) < Point(2) and Colour(1) is Colour.RED
assert pickle.loads(pickle.dumps(collections.Counter("abca"))) == {"a": 2, "b": 1, "c": 1}
assert copy.deepcopy([[1]]) == [[1]] and list(itertools.islice(itertools.count(), 2)) == [0, 1]
assert "n" in inspect.signature(fibonacci).parameters and typing.get_type_hints(fibonacci)
with contextlib.suppress(KeyError):
    {}[1]

print("@FORBIDDEN@"[::-1])
