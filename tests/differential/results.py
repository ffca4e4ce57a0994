"""Section R of the contract, read by its words alone: what a program receives for a tool's result.

Standard input holds one case a line:

    {"result": CallToolResult, "wrap": "unmarked" | "some" | "marked", "declared": type or null,
     "limit": bytes or null, "got": {"value": JSON text} or {"error": kind, "text": words}}

`got` is what ptc-mcp made of it. Every case is read here as well; disagreements are printed, and at
last how many cases ended in which way. Nothing here was derived from ptc-mcp's code.
"""

import collections
import json
import sys

NAME = "mcp__srv__tool"

if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)


class ToolError(Exception):
    def __init__(self, kind, text=None):
        super().__init__(kind)
        self.kind = kind
        self.text = text


class NotJson(ValueError):
    pass


def no_constant(name):
    raise NotJson(name)


def load(text):
    return json.loads(text, parse_constant=no_constant)


def is_json(text):
    try:
        load(text)
    except ValueError:
        return False
    return True


def same(a, b):
    """R8: values, not bytes; `1` and `1.0` are equal, `true` is not `1`."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b
    return type(a) is type(b) and a == b


def renders(text, value):
    """Whether the text is the JSON rendering of the value."""
    return is_json(text) and same(load(text), value)


def tells(text, value):
    """Whether the text is the value, or its JSON rendering."""
    return (isinstance(value, str) and text == value) or renders(text, value)


def read_blocks(content):
    """R7: pairs of whether it is text, and the text or the note in its place."""
    blocks = []
    for block in content:
        kind = block["type"]
        if kind == "text":
            blocks.append((True, block["text"]))
        elif kind == "resource" and "text" in block["resource"]:
            blocks.append((True, block["resource"]["text"]))
        else:
            if kind in ("image", "audio"):
                detail = block["mimeType"]
            elif kind == "resource":
                detail = block["resource"]["uri"]
            else:
                detail = block["uri"]
            blocks.append((False, "[non-text content omitted: %s (%s)]" % (kind, detail)))
    return blocks


def without_elements(left, elements):
    """R4: without the texts that are, in order and each once, the elements of a list."""
    kept, awaited = [], 0
    for is_text, text in left:
        if is_text and awaited < len(elements) and tells(text, elements[awaited]):
            awaited += 1
        else:
            kept.append((is_text, text))
    return kept if awaited == len(elements) else left


def from_structured(structured, blocks, is_marked, is_genuine):
    texts = [text for is_text, text in blocks if is_text]
    wrapped = isinstance(structured, dict) and list(structured) == ["result"]
    if wrapped and not is_marked:
        # R3, and R4 for servers that mark some results
        wrapped = not is_genuine and not any(renders(text, structured) for text in texts)
    if not wrapped:
        told = [structured]
        value = structured
    else:
        value = structured["result"]
        told = [value]
        if isinstance(value, str) and is_json(value):
            value = load(value)
            told.append(value)
    left = [
        (is_text, text)
        for is_text, text in blocks
        if not (is_text and any(tells(text, each) for each in told))
    ]
    if wrapped and isinstance(value, list):
        left = without_elements(left, value)
    return value, [text for _, text in left]


def from_texts(blocks):
    """R5."""
    texts = [text for is_text, text in blocks if is_text]
    others = [text for is_text, text in blocks if not is_text]
    if not texts:
        return None, others
    if len(texts) > 1 and sum(map(is_json, texts)) == 1:
        sole = next(text for text in texts if is_json(text))
        place = blocks.index((True, sole))
        return load(sole), [text for _, text in blocks[:place] + blocks[place + 1 :]]
    joined = "\n".join(texts)
    return (load(joined) if is_json(joined) else joined), others


TYPES = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
}


def receive(case):
    result = case["result"]
    blocks = read_blocks(result.get("content", []))
    if result.get("isError"):
        words = [text.strip() for is_text, text in blocks if is_text]
        words = " ".join(word for word in words if word) or "no details"
        raise ToolError("failed", "'%s' returned an error: %s" % (NAME, words))
    if case["declared"]:
        # R9
        if "structuredContent" not in result:
            raise ToolError("schema")
        if not TYPES[case["declared"]](result["structuredContent"]):
            raise ToolError("schema")
    if "structuredContent" in result:
        meta = result.get("_meta", {}).get("fastmcp", {})
        is_marked = meta.get("wrap_result") is True or case["wrap"] == "marked"
        value, notes = from_structured(
            result["structuredContent"], blocks, is_marked, case["wrap"] == "some"
        )
    else:
        value, notes = from_texts(blocks)
    if notes:
        # R6
        if isinstance(value, dict) and "_notes" not in value:
            value = dict(value, _notes=notes)
        else:
            value = {"data": value, "_notes": notes}
    if case["limit"] is not None:
        # R10; cases with a limit are written as compactly as they can be
        size = len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())
        if size > case["limit"]:
            raise ToolError("too large")
    return value


def main():
    sys.stdin.reconfigure(encoding="utf-8")
    sys.stdout.reconfigure(encoding="utf-8")
    ways = collections.Counter()
    for line in sys.stdin:
        case = load(line)
        got = case["got"]
        try:
            expected = receive(case)
        except ToolError as error:
            ways[error.kind] += 1
            agree = got.get("error") == error.kind and error.text in (None, got["text"])
            expected = "%s: %s" % (error.kind, error.text)
        else:
            ways["value"] += 1
            agree = "value" in got and same(load(got["value"]), expected)
        if not agree:
            print("DISAGREE", json.dumps({"expected": expected, "case": case}, ensure_ascii=False))
    for way, count in sorted(ways.items()):
        print("%s: %d" % (way, count))


if __name__ == "__main__":
    main()
