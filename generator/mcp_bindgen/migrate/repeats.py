"""Find handlers that run again from their start after each question, and the lines that run again with them.

A handler waits for the answer of a question that is a message. A handler whose question travels in the result ends
there, and runs once more with the answer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from mcp_bindgen.spec.toml import read_toml

from .changes import Changes
from .files import Module
from .result import Change, Place, Use

_PURE = read_toml(Path(__file__).with_suffix(".toml"))
"""Functions and methods whose calls may be repeated: they only compute."""

_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Asked:
    """A question to the client: the place of the called attribute, in bytes of UTF-8, and its change."""

    file: Path
    line: int
    offset: int
    change: Change


@dataclass
class _Handler:
    """A function of the project.

    Attributes:
        node: Its syntax.
        label: Its name for readers.
        place: The place of its name.
        questions: The calls that ask, directly or through another function, with the change behind each.
    """

    node: _Function
    label: str
    place: Place
    questions: dict[ast.Call, Change] = field(default_factory=dict[ast.Call, Change])

    @property
    def calls(self) -> Iterator[ast.Call]:
        """The calls in its body."""
        return (one for one in ast.walk(self.node) if isinstance(one, ast.Call))


def repeats(
    modules: Mapping[Path, Module], handlers: Mapping[tuple[Path, int], str], asked: Iterable[Asked], changes: Changes
) -> Iterator[Use]:
    """Return one use for each function that asks, directly or through a function that it calls.

    Args:
        modules: The files.
        handlers: File and line -> the handler of the bindings that a method overrides.
        asked: The questions.
        changes: The changes between the bindings.
    """
    questions = {(one.file, one.line, one.offset): one.change for one in asked}
    if not questions:
        return
    functions: dict[str, list[_Handler]] = {}
    contexts: set[str] = set()
    for path, module in modules.items():
        for found in _functions(module, handlers):
            functions.setdefault(found.node.name, []).append(found)
            for call in found.calls:
                change = questions.get((path, call.func.lineno, call.func.col_offset))
                if change is not None and isinstance(call.func, ast.Attribute):
                    found.questions[call] = change
                    contexts.add(ast.unparse(call.func.value))
    everything = [one for found in functions.values() for one in found]
    spread = True
    while spread:
        spread = False
        for one in everything:
            for call in one.calls:
                callees = functions.get(_callee(call, contexts), [])
                asking = next((other for other in callees if other.questions and other is not one), None)
                if asking is not None and call not in one.questions:
                    one.questions[call] = next(iter(asking.questions.values()))
                    spread = True
    for one in everything:
        if one.questions:
            yield Use(one.place, one.label, _change(one, changes))


def _functions(module: Module, handlers: Mapping[tuple[Path, int], str]) -> Iterator[_Handler]:
    def inside(body: Sequence[ast.stmt], owner: str) -> Iterator[_Handler]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from inside(node.body, f"{node.name}.")
            elif isinstance(node, _Function):
                label = handlers.get((module.path, node.lineno), f"{owner}{node.name}")
                yield _Handler(node, label, module.header(node))

    return inside(module.tree.body, "")


def _callee(call: ast.Call, contexts: set[str]) -> str:
    """Return the name of a function of the project that a call may call: of a method if the call passes a context."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            return name
        case ast.Attribute(attr=name) if any(ast.unparse(one) in contexts for one in call.args):
            return name
        case _:
            return ""


def _change(one: _Handler, changes: Changes) -> Change:
    asked = _lines({call.lineno for call in one.questions})
    again = _lines(set(_repeated(one, changes)))
    first = next(iter(one.questions.values()))
    hint = "Nothing before a question does more than compute: keep it so."
    if again:
        verb = "runs" if again.startswith("line ") else "run"
        hint = f"{again.capitalize()} {verb} again, too: put effects that must happen once behind it, e.g. a payment."
    new = f"runs again from its start after each question ({asked})"
    return Change("repeated", first.rule, first.subject, "waits for the answer", new, hint, first.fingerprint)


def _repeated(one: _Handler, changes: Changes) -> Iterator[int]:
    """Return the lines that have an effect and run again: those before the last question, or in a loop with one."""
    last = max((call.lineno, call.col_offset) for call in one.questions)
    for loop in (node for node in ast.walk(one.node) if isinstance(node, _LOOPS)):
        if any(call in one.questions for call in ast.walk(loop) if isinstance(call, ast.Call)):
            last = max(last, (_end(loop)[0] + 1, 0))
    for node in ast.walk(one.node):
        if isinstance(node, ast.stmt) and node is not one.node:
            parts: Iterable[ast.stmt | ast.expr] = [node] if isinstance(node, _SIMPLE) else _heads(node)
            if any(_end(part) <= last and _acts(part, one, changes) for part in parts):
                yield node.lineno


def _acts(node: ast.AST, one: _Handler, changes: Changes) -> bool:
    """Return whether code may do more than compute: it calls something else, or changes an object."""
    classes = changes.old.protocol.definitions
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                return True
            case ast.Call(func=ast.Name(id=name)) if name in _PURE["functions"] or name in classes:
                pass
            case ast.Call(func=ast.Attribute(attr=name)) if name in _PURE["methods"] or name in classes:
                pass
            case ast.Call() if inner not in one.questions:
                return True
            case _:
                pass
    return False


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
    ranges = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    words = " and ".join(filter(None, [", ".join(ranges[:-1]), *ranges[-1:]]))
    return f"line{'' if len(ordered) == 1 else 's'} {words}" if ordered else ""
