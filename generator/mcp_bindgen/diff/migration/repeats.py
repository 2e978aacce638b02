"""Finds handlers that run again from their start after each question, and the lines that run again with them.

Where a question was a message, a handler waits for the answer. Where it travels in the result, the handler ends there
and runs once more when the answer has come.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from .changes import Change, Changes
from .project import Module
from .result import Place, Use
from .typecheck import TypedCode

_COMPUTING = frozenset(
    {
        *("abs", "all", "any", "bool", "dict", "enumerate", "float", "format", "getattr", "hasattr", "int"),
        *("isinstance", "len", "list", "max", "min", "range", "repr", "round", "set", "sorted", "str", "sum"),
        *("tuple", "type", "zip"),
    }
)
_LOOKING = frozenset(
    {
        *("copy", "endswith", "format", "get", "items", "join", "keys", "lower", "model_copy", "model_dump"),
        *("model_dump_json", "model_validate", "model_validate_json", "split", "startswith", "strip", "upper"),
        "values",
    }
)
"""Functions and methods whose calls may be repeated: they only compute."""

_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class _Handler:
    """A function of the project.

    Attributes:
        node: Its syntax.
        label: Its name for readers.
        place: Where its name stands.
        offset: How many lines there are before its module.
        questions: The calls that ask, also by another function, and the change behind each.
        calls: The calls of functions of the project, by the full names of these.
    """

    node: _Function
    label: str
    place: Place
    offset: int
    questions: dict[ast.Call, Change] = field(default_factory=dict[ast.Call, Change])
    calls: list[tuple[str, ast.Call]] = field(default_factory=list[tuple[str, ast.Call]])


class Repeats:
    """The functions of a project, and the questions in them.

    Args:
        types: What expressions are.
        changes: What became of the bindings.
    """

    def __init__(self, types: TypedCode, changes: Changes) -> None:
        self._types, self._changes = types, changes
        self._functions: dict[str, _Handler] = {}
        self._handlers = {stub.name for stub in changes.old.handlers.values()}

    def read(self, module: Module, name: str, offset: int) -> None:
        """Read the functions of a module; its lines are numbered as in `types`."""
        self._body(module.tree.body, module, name, (), offset)

    def _body(self, body: Sequence[ast.stmt], module: Module, above: str, owners: Sequence[str], offset: int) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                classes = (self._types.extended(node) or node.name, node.name)
                self._body(node.body, module, f"{above}.{node.name}", classes, offset)
            elif isinstance(node, _Function):
                labels = [f"{owner}.{node.name}" for owner in owners] or [node.name]
                label = labels[0] if labels[0] in self._handlers else labels[-1]
                found = _Handler(node, label, module.header(node, offset), offset)
                self._functions[f"{above}.{node.name}"] = found
                for call in (one for one in ast.walk(node) if isinstance(one, ast.Call)):
                    names, _, _ = self._types.called(call)
                    asked = [change for one in names if (change := self._changes.asking.get(one)) is not None]
                    if asked:
                        found.questions[call] = asked[0]
                    found.calls += [(callee, call) for callee in self._types.callees(call)]

    def uses(self) -> Iterator[Use]:
        """Return one use for each function that asks, itself or by a function that it calls."""
        spread = True
        while spread:
            spread = False
            for one in self._functions.values():
                for callee, call in one.calls:
                    asked = self._functions[callee].questions if callee in self._functions else {}
                    if asked and call not in one.questions and self._functions[callee] is not one:
                        one.questions[call] = next(iter(asked.values()))
                        spread = True
        for one in self._functions.values():
            if one.questions:
                yield Use(one.place, one.label, self._change(one), certain=True)

    def _change(self, one: _Handler) -> Change:
        asked = _lines({call.lineno - one.offset for call in one.questions})
        again = _lines({line - one.offset for line in self._repeated(one)})
        first = next(iter(one.questions.values()))
        hint = "Nothing before a question does more than compute: keep it so."
        if again:
            verb = "runs" if again.startswith("line ") else "run"
            hint = f"{again.capitalize()} {verb} again, too: put what must happen once, such as a payment, behind it."
        new = f"runs again from its start after each question ({asked})"
        return Change("repeated", first.rule, first.subject, "waits for the answer", new, hint, first.fingerprint)

    def _repeated(self, one: _Handler) -> Iterator[int]:
        """Return the lines that have an effect and run again: those before the last question, or in a loop with one."""
        last = max((call.lineno, call.col_offset) for call in one.questions)
        for loop in (node for node in ast.walk(one.node) if isinstance(node, _LOOPS)):
            if any(call in one.questions for call in ast.walk(loop) if isinstance(call, ast.Call)):
                last = max(last, (_end(loop)[0] + 1, 0))
        for node in ast.walk(one.node):
            if isinstance(node, ast.stmt) and node is not one.node:
                parts: Iterable[ast.stmt | ast.expr] = [node] if isinstance(node, _SIMPLE) else _heads(node)
                if any(_end(part) <= last and self._acts(part, one) for part in parts):
                    yield node.lineno

    def _acts(self, node: ast.AST, one: _Handler) -> bool:
        """Return whether code may do more than compute: it calls something else, or changes an object."""
        for inner in ast.walk(node):
            match inner:
                case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                    return True
                case ast.Call(func=ast.Name(id=name)) if name in _COMPUTING:
                    pass
                case ast.Call(func=ast.Attribute(attr=name)) if name in _LOOKING:
                    pass
                case ast.Call() if inner in one.questions or self._is_type(inner):
                    pass
                case ast.Call():
                    return True
                case _:
                    pass
        return False

    def _is_type(self, call: ast.Call) -> bool:
        return (self._types.refers_to(call.func) or "").startswith("types.")


def _end(node: ast.stmt | ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _heads(node: ast.stmt) -> Iterator[ast.expr]:
    """Return the expressions of a statement with a body that run before the body."""
    match node:
        case ast.If(test=head) | ast.While(test=head) | ast.For(iter=head) | ast.AsyncFor(iter=head):
            yield head
        case ast.Match(subject=head):
            yield head
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from (item.context_expr for item in items)
        case _:
            return


def _lines(numbers: Iterable[int]) -> str:
    """Return numbers of lines in words: `lines 9 and 11-13`."""
    ordered = sorted(numbers)
    runs = [[line for _, line in run] for _, run in groupby(enumerate(ordered), key=lambda pair: pair[1] - pair[0])]
    said = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    words = " and ".join(filter(None, [", ".join(said[:-1]), *said[-1:]]))
    return f"line{'' if len(ordered) == 1 else 's'} {words}" if ordered else ""
