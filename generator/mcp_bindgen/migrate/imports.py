"""Rewrite the imports of a Python file from the bindings of one revision to the bindings of another.

Only the name of the package changes, where the syntax says that it is that name; every other byte stays.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mcp_bindgen.emit.python.installation import NAMESPACE

from .files import Module, parse


@dataclass(frozen=True)
class Rewritten:
    """A file after its imports were rewritten.

    Attributes:
        raw: Its bytes; the same as before where nothing was rewritten.
        lines: The lines that changed, counted from 1.
        problem: The reason for leaving the file as it is; empty if it was rewritten.
    """

    raw: bytes
    lines: tuple[int, ...] = ()
    problem: str = ""


def rewrite_imports(
    raw: bytes, old: str, new: str, own: frozenset[str] = frozenset(), namespace: str = NAMESPACE
) -> Rewritten:
    """Rewrite the references to a package of bindings in a file.

    Args:
        raw: The content of the file.
        old: The name of the old package inside of our namespace, e.g. `v2025_11_25`.
        new: The name of the new package.
        own: The top-level names of the project itself, whose modules may hand the package on; none where a module of
            the project has the name of the old package.
        namespace: The package that has the new one.
    """
    if old == new or old.encode() not in raw:
        return Rewritten(raw)
    module = parse(Path(), raw)
    if not isinstance(module, Module):
        return Rewritten(raw, problem=module)
    references = _References(module, old, new, own)
    try:
        places = sorted(references.places())
    except _UnclearError:
        return Rewritten(raw, problem=f"{old} stands there in a way that is not understood")
    if not places:
        return Rewritten(raw)
    if problem := references.problem():
        return Rewritten(raw, problem=problem)
    text = bytearray(references.text)
    above = f"{NAMESPACE}.".encode()
    for place in reversed(places):
        is_below = text.endswith(above, 0, place)
        text[place : place + len(old)] = new.encode()
        if is_below:
            text[place - len(above) : place] = f"{namespace}.".encode()
    changed = dict.fromkeys(references.line(place) for place in places)
    found = text.decode()
    if namespace != NAMESPACE:
        found = re.sub(rf"(?m)^(\s*from\s+){NAMESPACE}(\s+import\s+{new}\b(?![^#\n]*,))", rf"\1{namespace}\2", found)
        rest = rewrite_imports(found.encode(module.encoding), new, old)
        if rest.lines or rest.problem:
            return Rewritten(raw, problem=f"{old} is imported beside other names; import it on a line of its own")
    return Rewritten(found.encode(module.encoding), tuple(changed))


class _UnclearError(Exception):
    """A name is spelled in a way that cannot be rewritten."""


class _References:
    """The references to a package of bindings in one file.

    Attributes:
        text: The file in UTF-8.
        bound: True if the package is known by its own name in this file.
        namespaces: The names by which our namespace is known.
        uses_new: True if the file imports the new package already.
    """

    def __init__(self, module: Module, old: str, new: str, own: frozenset[str]) -> None:
        self.tree, self.old, self.new, self.own = module.tree, old, new, own
        self.text, self._start, self._end, self._starts = module.utf8, module.start, module.end, module.starts
        self._dotted = re.compile(rf"{NAMESPACE}\.{re.escape(old)}([.:][\w.:]*)?")
        self.bound = False
        self.namespaces: set[str] = set()
        self.uses_new = False
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.partition(".")[0] == NAMESPACE and (not alias.asname or alias.name == NAMESPACE):
                        self.namespaces.add(alias.asname or NAMESPACE)
                    self.bound |= self.is_package(alias.name) and alias.asname == old
                    self.uses_new |= _is_inside(alias.name, new)
            elif isinstance(node, ast.ImportFrom):
                module_name = "." * node.level + (node.module or "")
                self.uses_new |= any(_is_inside(f"{module_name}.{alias.name}", new) for alias in node.names)
                self.uses_new |= _is_inside(module_name, new)
                for alias in node.names if self.may_offer(node) else ():
                    self.bound |= alias.name == "*" and module_name != NAMESPACE
                    self.bound |= alias.name == old and alias.asname in (None, old)

    def line(self, place: int) -> int:
        """Return the line, from 1, of an offset."""
        return bisect_right(self._starts, place)

    def is_package(self, name: str) -> bool:
        """Return True if a dotted name is the old package, or something in it."""
        return _is_inside(name, self.old)

    def may_offer(self, node: ast.ImportFrom) -> bool:
        """Return True if the old package can be imported there: from our namespace, or a module of the project."""
        module = node.module or ""
        return bool(self.own) if node.level else module == NAMESPACE or module.partition(".")[0] in self.own

    # --- places of the name -------------------------------------------------------------------------------------

    def places(self) -> Iterator[int]:
        """Yield the offsets in `text` at which the name of the package starts.

        Raises:
            _UnclearError: A name is spelled in another way than it reads.
        """
        named = set(self._named())
        inner = {part for one in ast.walk(self.tree) if isinstance(one, ast.JoinedStr) for part in one.values}
        for node in ast.walk(self.tree):
            match node:
                case ast.Import(names=names):
                    for alias in names:
                        if self.is_package(alias.name):
                            yield from self._within(alias, 1 + (alias.asname == self.old))
                case ast.ImportFrom(module=str(module), level=0) if self.is_package(module):
                    start = self._start(node)
                    yield from self._found(start, self.text.index(b"import", start), 1)
                case ast.ImportFrom(names=names) if self.may_offer(node):
                    for alias in names:
                        if alias.name == self.old:
                            yield from self._within(alias, 1 + (alias.asname == self.old))
                case ast.Name() if self._is_reference(node):
                    yield from self._found(self._start(node), self._end(node), 1)
                case ast.Attribute() if self._is_reference(node):
                    yield from self._found(self._end(node) - len(self.old), self._end(node), 1)
                case ast.JoinedStr(values=values):
                    texts = [one.value for one in values if isinstance(one, ast.Constant)]
                    count = sum(isinstance(one, str) and self._dotted.fullmatch(one) is not None for one in texts)
                    if count:
                        yield from self._within(node, count, f"{NAMESPACE}.")
                case ast.Constant(value=str(text)) if node not in inner and (
                    node in named or self._names_package(text)
                ):
                    yield from self._within(node, text.count(self.old))
                case _:
                    pass

    def _is_reference(self, node: ast.AST) -> bool:
        """Return True if an expression is the package itself."""
        match node:
            case ast.Name(id=name):
                return self.bound and name == self.old
            case ast.Attribute(value=ast.Name(id=base), attr=name):
                return base in self.namespaces and name == self.old
            case _:
                return False

    def _named(self) -> Iterator[ast.expr]:
        """Yield strings that are the package because of their place: in `import_module`, or in `__all__`."""
        for node in ast.walk(self.tree):
            match node:
                case ast.Call(args=[ast.Constant(value=str(text)) as name, ast.Constant(value=base)]):
                    if base == NAMESPACE and re.fullmatch(rf"\.{re.escape(self.old)}(\.[\w.]*)?", text):
                        yield name
                case (
                    ast.Assign(targets=[ast.Name(id="__all__"), *_], value=ast.expr() as value)
                    | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value)
                    | ast.AugAssign(target=ast.Name(id="__all__"), value=value)
                ) if self.bound:
                    strings = (one for one in ast.walk(value) if isinstance(one, ast.Constant))
                    yield from (one for one in strings if one.value == self.old)
                case _:
                    pass

    def _names_package(self, text: str) -> bool:
        """Return True if a string is a dotted name of the package, or an expression such as a quoted annotation."""
        if self._dotted.fullmatch(text):
            return True
        if text.isidentifier() or self.old not in text:
            return False
        try:
            count = sum(map(self._is_reference, ast.walk(ast.parse(text, mode="eval"))))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
        return count > 0 and count == text.count(self.old)

    def _within(self, node: ast.expr | ast.alias, count: int, prefix: str = "") -> Iterator[int]:
        return self._found(self._start(node), self._end(node), count, prefix)

    def _found(self, start: int, end: int, count: int, prefix: str = "") -> Iterator[int]:
        """Yield the offsets of the name between two offsets, behind a prefix; there must be `count`."""
        name = re.compile(re.escape(f"{prefix}{self.old}".encode()))
        found = [one.start() + len(prefix) for one in name.finditer(self.text, start, end)]
        if len(found) != count:
            raise _UnclearError
        yield from found

    # --- problems -----------------------------------------------------------------------------------------------

    def problem(self) -> str:
        """Return why references cannot be renamed: both packages are used, or a name means something else too."""
        if self.uses_new:
            return f"it imports {self.new} already; one file uses both revisions"
        lines = sorted(line for name, line in self._others() if name in (self.old, self.new)) if self.bound else []
        return f"line {lines[0]} calls something else {self.old}" if lines else ""

    def _others(self) -> Iterator[tuple[str | None, int]]:
        """Yield the names that the file binds to anything but the package, and their lines."""
        for node in ast.walk(self.tree):
            match node:
                case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                    yield name, node.lineno
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    yield name, node.lineno
                case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name):
                    yield name, node.lineno
                case ast.MatchMapping(rest=name):
                    yield name, node.lineno
                case ast.Import(names=names):
                    for alias in names:
                        if not self.is_package(alias.name):
                            yield alias.asname or alias.name.partition(".")[0], node.lineno
                case ast.ImportFrom(names=names):
                    for alias in names:
                        if not (alias.name == self.old and self.may_offer(node)):
                            yield alias.asname or alias.name, node.lineno
                case _:
                    pass


def _is_inside(name: str, package: str) -> bool:
    return f"{name}.".startswith(f"{NAMESPACE}.{package}.")
