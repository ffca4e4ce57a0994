# What can be known of a program's tool calls before any of it runs. Pure: source and what the host
# offers in, findings out. Uses the interpreter's own syntax tree, so that it is exact for the
# interpreter at hand, and no module that is not built in.
#
# One finding in a program that would have run is worse than a hundred that are missed: whatever is
# uncertain is left alone. A name that the program binds anywhere, in whatever scope, is its own
# business; so is everything in a program that can reach its own names by other ways; so is what
# stands in a `try` that could catch the error, and in a function if anything in the program could.


def find_mistakes(source, filename, flags, offer):
    """The mistakes as (line, text), in the order of the lines."""
    import _ast

    tree = compile(source, filename, "exec", flags | _ast.PyCF_ONLY_AST, True)
    look = _Look(_ast, offer)
    look.at(tree)
    return look.findings()


def describe_mistakes(mistakes, source, offer):
    """All findings as the text of one error."""
    lines = source.splitlines()
    number = len(mistakes)
    count = "1 mistake" if number == 1 else "%d mistakes" % number
    text = ["CheckError: %s found before the program started; nothing has run." % count]
    shown = {}
    for line, what, tool in mistakes[:20]:
        text.append('  File "<program>", line %d' % line)
        if 0 < line <= len(lines):
            text.append("    " + lines[line - 1].strip()[:160])
        text.append("  " + what)
        if tool in offer["named"]:
            shown[tool] = offer["named"][tool]["signature"]
    if number > 20:
        text.append("... and %d more" % (number - 20))
    if shown:
        text.append("Signatures:")
        text += ["  " + signature for signature in list(shown.values())[:8]]
    return "\n".join(text)


KEYWORDS = frozenset(
    "False None True and as assert async await break class continue def del elif else except"
    " finally for from global if import in is lambda nonlocal not or pass raise return try while"
    " with yield".split()
)

# What each kind of mistake ends in at run time, and what catches that.
_CAUGHT_BY = {
    "name": ("NameError", "Exception", "BaseException"),
    "type": ("TypeError", "Exception", "BaseException"),
    "tool": ("ToolError", "Exception", "BaseException"),
}

# Classes of exceptions that are none of those above.
_OTHER_ERRORS = frozenset(
    "ArithmeticError AssertionError AttributeError BufferError EOFError ImportError IndexError KeyError"
    " KeyboardInterrupt LookupError MemoryError ModuleNotFoundError NotImplementedError OSError IOError"
    " OverflowError RecursionError ReferenceError RuntimeError StopAsyncIteration StopIteration SyntaxError"
    " SystemError SystemExit TimeoutError UnicodeDecodeError UnicodeEncodeError UnicodeError ValueError"
    " ZeroDivisionError FileNotFoundError PermissionError ConnectionError".split()
)
_KNOWN_ERRORS = _OTHER_ERRORS | {"NameError", "TypeError", "ToolError"}

# By these a program can reach or replace its names without writing them.
_REACHES_NAMES = frozenset(
    "globals locals vars exec eval setattr delattr __builtins__ __dict__ modules __import__ import_module"
    " _getframe currentframe f_globals f_locals __globals__ FunctionType settrace setprofile".split()
)
_REACHING_MODULES = frozenset("builtins __main__ runpy code codeop gc ctypes doctest pickle marshal".split())

# By these it can learn which tools there are.
_LOOKS_AROUND = frozenset("list_callable_tools inspect_tool server_status dir callable hasattr getattr".split())

# By these an exception in a function can be caught without a `try`.
_CATCHES = frozenset(
    "suppress return_exceptions exception wait set_exception_handler contextmanager asynccontextmanager ExitStack"
    " AsyncExitStack __exit__ __aexit__ unittest assertRaises excepthook".split()
)


class _Look:
    def __init__(self, _ast, offer):
        self.ast = _ast
        self.tools = set(offer["tools"])
        self.named = offer["named"]
        self.closest = offer["closest"]
        self.down = tuple(offer["down"])
        self.helpers = offer["helpers"]
        self.bound = set()
        self.words = set()
        self.imported = set()
        self.texts = []
        self.catches = False
        self.branches = False
        self.found = []  # (line, column, kind, name, what, caught around it, in a function, in a `with`)
        node = _ast
        self.functions = node.FunctionDef, node.AsyncFunctionDef, node.Lambda
        self.tries = tuple(getattr(node, name) for name in ("Try", "TryStar") if hasattr(node, name))
        self.withs = node.With, node.AsyncWith
        self.forks = tuple(
            getattr(node, name)
            for name in ("If", "IfExp", "BoolOp", "While", "Match", "Assert", "Raise", "comprehension", "Return")
            if hasattr(node, name)
        )
        # Members that no finding comes from: an annotation may never be evaluated.
        self.passed_over = frozenset(("annotation", "returns", "type_comment", "ctx"))

    def at(self, tree):
        """Walks the whole tree, without recursion: programs may nest as deep as they like."""
        ast = self.ast
        todo = [(tree, (), False, False)]  # node, what is caught around it, in a function, in a `with`
        while todo:
            node, around, inside, within = todo.pop()
            self.binds(node)
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    self.uses(node, around, inside, within)
            elif isinstance(node, ast.Expr):
                self.drops(node.value, around, inside, within)
            elif isinstance(node, ast.Call):
                self.calls(node, around, inside, within)
            elif isinstance(node, ast.Constant):
                if isinstance(node.value, str):
                    self.texts.append(node.value)
            elif isinstance(node, self.forks):
                self.branches = True
            if isinstance(node, self.tries):
                catchers = self.catchers(node)
                if catchers:
                    self.catches = True
                todo.extend((child, around + catchers, inside, within) for child in self.children(node, "body"))
                for field in ("handlers", "orelse", "finalbody"):
                    todo.extend((child, around, inside, within) for child in self.children(node, field))
                continue
            if isinstance(node, ast.If) and isinstance(node.test, ast.Constant) and not node.test.value:
                self.skips(node.body)
                todo.extend((child, around, inside, within) for child in self.children(node, "orelse"))
                continue
            if isinstance(node, ast.GeneratorExp):
                # Runs where it is iterated over.
                around, inside, within = (), True, False
            if isinstance(node, self.functions):
                # Its body runs where it is called, whatever stands around it here.
                todo.extend((child, (), True, False) for child in self.children(node, "body"))
                for field in node._fields:
                    if field != "body" and field not in self.passed_over:
                        todo.extend((child, around, inside, within) for child in self.children(node, field))
                continue
            within = within or isinstance(node, self.withs)
            for field in node._fields:
                if field not in self.passed_over:
                    todo.extend((child, around, inside, within) for child in self.children(node, field))

    def reached(self, statements):
        """Those before one after which nothing in their block can run."""
        ast = self.ast
        leaves = ast.Raise, ast.Return, ast.Break, ast.Continue
        for index, statement in enumerate(statements):
            call = statement.value if isinstance(statement, ast.Expr) else None
            ends = isinstance(call, ast.Call) and (
                isinstance(call.func, ast.Name)
                and call.func.id in ("exit", "quit")
                or isinstance(call.func, ast.Attribute)
                and call.func.attr in ("exit", "_exit")
            )
            if ends or isinstance(statement, leaves):
                self.skips(statements[index + 1 :])
                return statements[: index + 1]
        return statements

    def skips(self, statements):
        """Looks at code that never runs for the names that it binds all the same."""
        todo = list(statements)
        while todo:
            node = todo.pop()
            self.binds(node)
            for field in node._fields:
                value = getattr(node, field, None)
                inner = value if isinstance(value, list) else [value]
                todo.extend(child for child in inner if isinstance(child, self.ast.AST))

    def children(self, node, field):
        value = getattr(node, field, None)
        if isinstance(value, list):
            nodes = [child for child in value if isinstance(child, self.ast.AST)]
            return self.reached(nodes) if nodes and isinstance(nodes[0], self.ast.stmt) else nodes
        return [value] if isinstance(value, self.ast.AST) else []

    def binds(self, node):
        """Notes every name that the node binds or removes, and every word by which it may reach more."""
        ast = self.ast
        if isinstance(node, ast.Name):
            self.words.add(node.id)
            if not isinstance(node.ctx, ast.Load):
                self.bound.add(node.id)
        elif isinstance(node, ast.Attribute):
            self.words.add(node.attr)
        elif isinstance(node, ast.keyword):
            self.words.add(node.arg)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            self.bound.update(node.names)
        elif isinstance(node, ast.alias):
            self.bound.add(node.asname or node.name.split(".")[0])
            self.words.update(node.name.split("."))
            self.imported.update(node.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            self.imported.update((node.module or "").split("."))
        elif isinstance(node, ast.arg):
            self.bound.add(node.arg)
        else:
            # Functions, classes, handlers, patterns, type parameters.
            for field in ("name", "rest"):
                name = getattr(node, field, None)
                if isinstance(name, str):
                    self.bound.add(name)
                    self.words.add(name)

    def catchers(self, node):
        """What the handlers of a `try` could catch, as kinds of mistakes."""
        ast = self.ast
        caught = set()
        for handler in node.handlers:
            kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            for kind in kinds:
                if isinstance(kind, ast.Name) and kind.id in _KNOWN_ERRORS:
                    caught.update(mistake for mistake, by in _CAUGHT_BY.items() if kind.id in by)
                    # The program may have given the name to something else.
                    caught.add(kind.id)
                else:
                    caught.update(_CAUGHT_BY)
        leaves = ast.Return, ast.Break, ast.Continue
        todo = list(node.finalbody)
        while todo:
            inner = todo.pop()
            if isinstance(inner, leaves):
                caught.update(_CAUGHT_BY)
            for field in inner._fields:
                todo.extend(self.children(inner, field))
        return tuple(caught)

    def is_tool(self, node):
        return isinstance(node, self.ast.Name) and node.id in self.tools and not node.id.startswith(self.down)

    def note(self, node, kind, name, what, around, inside, within):
        self.found.append((node.lineno, node.col_offset, kind, name, what, around, inside, within))

    def uses(self, node, *where):
        name = node.id
        if name[:5] != "mcp__" or name in self.tools or name.startswith(self.down):
            return
        what = "NameError: name '%s' is not defined: no server offers such a tool" % name
        closest = self.closest.get(name)
        if closest:
            what += "; closest: %s" % ", ".join(closest)
        else:
            what += "; await list_callable_tools() gives the names that exist"
        self.note(node, "name", name, what, *where)

    def drops(self, node, around, inside, within):
        """A call as a statement of its own: it is never awaited, and so never made."""
        if not isinstance(node, self.ast.Call):
            return
        helper = isinstance(node.func, self.ast.Name) and node.func.id in self.helpers
        if not helper and not self.is_tool(node.func):
            return
        name = node.func.id
        # The call itself could be meant to fail, by an argument that is no JSON.
        kind = None if self.is_plain(node) else "type"
        what = 'RuntimeError: %s(...) is never awaited, so it would not run: write "await %s(...)"' % (name, name)
        self.note(node, kind, name, what, around, inside, within)

    def is_plain(self, call):
        constant = self.ast.Constant
        values = [word.value for word in call.keywords if word.arg is not None]
        plain = all(isinstance(value, constant) and isinstance(value.value, (str, int, type(None))) for value in values)
        return plain and not call.args and len(values) == len(call.keywords)

    def calls(self, node, *where):
        ast = self.ast
        if not self.is_tool(node.func):
            return
        name = node.func.id
        known = self.named.get(name)
        if any(not isinstance(value, ast.Starred) for value in node.args):
            example = "query=..."
            if isinstance(node.args[0], ast.Dict) and node.args[0].keys:
                example = "%s=..." % getattr(node.args[0].keys[0], "value", "query")
            if known:
                example = written((known["required"] or known["allowed"] or ())[:4]) or example
            self.note(node, "type", name, "TypeError: %s() takes keyword arguments only, e.g. %s(%s)" % (name, name, example), *where)
            return
        if not known:
            return
        given, spread = set(), bool(node.args)
        for word in node.keywords:
            if word.arg is None:
                spread = True
            else:
                given.add(word.arg)
        # `from_` stands for `from`, unless there is a parameter of that very name.
        names = {word[:-1] if word[-1:] == "_" and word[:-1] in KEYWORDS else word for word in given} | given
        missing = [word for word in known["required"] if word not in names]
        if missing and not spread:
            what = "TypeError: %s() requires %s" % (name, written(missing))
            self.note(node, "tool", name, what, *where)
        if known["allowed"] is not None:
            allowed = set(known["allowed"])
            for word in node.keywords:
                plain = word.arg
                if plain is None or plain in allowed:
                    continue
                if plain[-1:] == "_" and plain[:-1] in allowed and plain[:-1] in KEYWORDS:
                    continue
                self.note(node, "tool", name, self.unknown(name, plain, known["allowed"]), *where)

    def unknown(self, name, word, allowed):
        near = nearest(word, allowed)
        what = "TypeError: %s() has no parameter %r" % (name, word)
        if near:
            return "%s; did you mean %s?" % (what, written([near]))
        return "%s; it takes %s" % (what, ", ".join(allowed[:12]) or "none")

    def findings(self):
        if self.words & _REACHES_NAMES or self.imported & _REACHING_MODULES:
            return []
        anything_catches = self.catches or bool(self.words & _CATCHES)
        withs_catch = bool(self.words & _CATCHES)
        looks_around = self.branches and bool(self.words & _LOOKS_AROUND)
        found, tested = set(), set()
        for line, column, kind, name, what, around, inside, within in self.found:
            if name in self.bound:
                continue
            if kind == "name" and (looks_around or any(name in text for text in self.texts)):
                continue
            caught = kind in around or any(word in self.bound for word in around)
            if kind is not None and (caught or inside and anything_catches or within and withs_catch):
                if kind == "name":
                    # So the program asks whether it is there, and may use it only if it is.
                    tested.add(name)
                continue
            found.add((line, column, what, name))
        found = [one for one in found if one[3] not in tested]
        return [(line, what, name) for line, _, what, name in sorted(found)]


def written(names):
    """Parameters as they are passed."""
    plain = ["%s%s=..." % (name, "_" if name in KEYWORDS else "") for name in names if name.isidentifier()]
    others = ["%r: ..." % name for name in names if not name.isidentifier()]
    return ", ".join(plain + (["**{%s}" % ", ".join(others)] if others else []))


def nearest(word, names):
    """The name that is most like `word`, or None: by the pairs of letters that they share."""

    def pairs(text):
        text = text.lower().replace("-", "_")
        return {text[i : i + 2] for i in range(len(text) - 1)} or {text}

    best, most = None, 0.3
    mine = pairs(word)
    for name in names:
        theirs = pairs(name)
        likeness = 2 * len(mine & theirs) / (len(mine) + len(theirs))
        if likeness > most:
            best, most = name, likeness
    return best
