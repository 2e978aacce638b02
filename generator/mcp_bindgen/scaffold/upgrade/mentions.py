"""Where the syntax of a Python file names the package of a revision."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

NAMESPACE = "mcp_bindgen"


@dataclass(frozen=True)
class Spot:
    """A place in a file, as `ast` says it: lines begin with 1, columns count bytes of UTF-8 from 0.

    Attributes:
        line: The line.
        column: The column.
        word: The name is that many names further on; with `None`, it stands right there.
        end: Where the string ends that the name stands in, for strings.
        count: How often it stands in there.
    """

    line: int
    column: int
    word: int | None = None
    end: tuple[int, int] | None = None
    count: int = 1


class Mentions:
    """The places in a file that name the old package.

    Args:
        tree: The syntax of the file; `rename` changes it.
        old: The name of the old package inside of ours.
        new: That of the new one.
        own: The top-level names of the project itself; none where a module of it has the name of the old package.

    Attributes:
        problem: Why the file cannot be moved: it uses both packages, or the old name means something else too.
    """

    def __init__(self, tree: ast.Module, old: str, new: str, own: frozenset[str]) -> None:
        self.tree, self.old, self.new, self.own = tree, old, new, own
        self._nodes = list(ast.walk(tree))
        self._namespaces: set[str] = set()
        self._bound = False
        for node in self._nodes:
            self._imports(node)
        self._dotted = re.compile(rf"{NAMESPACE}\.{re.escape(old)}([.:][\w.:]*)?")
        self.problem = self._problem()

    def rename(self) -> Iterator[Spot]:
        """Names the new package in the tree, and says where that was."""
        for node in self._nodes:
            match node:
                case ast.Import():
                    for alias in node.names:
                        if self._leads(alias.name):
                            yield from self._alias(alias, 1)
                case ast.ImportFrom():
                    yield from self._from(node)
                case ast.Name() | ast.Attribute() if self._is_package(node):
                    yield _named(node, self.old)
                    _call(node, self.new)
                case ast.Constant(value=str(text)) if self.old in text:
                    yield from self._string(node, text)
                case ast.Call(args=[ast.Constant(value=str(text)) as name, ast.Constant(value=base)]):
                    if base == NAMESPACE and re.fullmatch(
                        rf"\.{re.escape(self.old)}(\.[\w.]*)?", text
                    ):  # importlib.import_module
                        yield self._replaced(name, text)
                case _:
                    pass

    # --- imports ------------------------------------------------------------------------------------------------

    def _imports(self, node: ast.AST) -> None:
        """Notes what an import makes of our names in this file."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                if top == NAMESPACE and (alias.asname is None or alias.name == NAMESPACE):
                    self._namespaces.add(alias.asname or top)
                self._bound |= self._leads(alias.name) and alias.asname == self.old
        if isinstance(node, ast.ImportFrom) and self._offers(node):
            known = (self.old, "*") if node.module != NAMESPACE else (self.old,)
            self._bound |= any(alias.name in known and alias.asname in (None, self.old) for alias in node.names)

    def _leads(self, name: str | None) -> bool:
        """Whether a dotted name is the old package, or something in it."""
        return name is not None and f"{name}.".startswith(f"{NAMESPACE}.{self.old}.")

    def _offers(self, node: ast.ImportFrom) -> bool:
        """Whether the old package can be imported from there: from ours, or from a module of the project."""
        top = (node.module or "").partition(".")[0]
        return (node.level > 0 and bool(self.own)) or node.module == NAMESPACE or top in self.own

    def _from(self, node: ast.ImportFrom) -> Iterator[Spot]:
        if node.level == 0 and self._leads(node.module):
            yield Spot(node.lineno, node.col_offset, word=2)
            node.module = self._renamed(str(node.module))
        elif self._offers(node):
            for alias in node.names:
                if alias.name == self.old:
                    yield from self._alias(alias, 0)

    def _alias(self, alias: ast.alias, index: int) -> Iterator[Spot]:
        """An import whose name has the package at `index`."""
        yield Spot(alias.lineno, alias.col_offset, word=index)
        if alias.asname == self.old:
            yield Spot(alias.lineno, alias.col_offset, word=alias.name.count(".") + 2)
            alias.asname = self.new
        alias.name = self._renamed(alias.name)

    def _renamed(self, dotted: str) -> str:
        return ".".join(self.new if part == self.old else part for part in dotted.split("."))

    # --- uses ---------------------------------------------------------------------------------------------------

    def _is_package(self, node: ast.AST) -> bool:
        """Whether an expression is the old package: its own name, or that of an attribute of ours."""
        match node:
            case ast.Name(id=name):
                return self._bound and name == self.old
            case ast.Attribute(value=ast.Name(id=base), attr=name):
                return base in self._namespaces and name == self.old
            case _:
                return False

    def _string(self, node: ast.Constant, text: str) -> Iterator[Spot]:
        """A string that is a dotted name, an expression such as a quoted annotation, or a name in `__all__`."""
        if self._dotted.fullmatch(text) or (self._bound and text == self.old and self._is_exported(node)):
            yield self._replaced(node, text)
        elif text.isidentifier():
            return
        else:
            try:
                inside = list(ast.walk(ast.parse(text, mode="eval")))
            except (SyntaxError, ValueError):
                return
            uses = sum(map(self._is_package, inside))
            if uses and uses == text.count(self.old):
                yield self._replaced(node, text)

    def _replaced(self, node: ast.Constant, text: str) -> Spot:
        node.value = text.replace(self.old, self.new)
        end = (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
        return Spot(node.lineno, node.col_offset, end=end, count=text.count(self.old))

    def _is_exported(self, node: ast.Constant) -> bool:
        """Whether a string stands in `__all__`."""
        for one in self._nodes:
            match one:
                case (
                    ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                    | ast.AugAssign(target=ast.Name(id="__all__"), value=value)
                ):
                    if any(node is inner for inner in ast.walk(value)):
                        return True
                case ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value):
                    if any(node is inner for inner in ast.walk(value)):
                        return True
                case _:
                    pass
        return False

    # --- what stands against it ---------------------------------------------------------------------------------

    def _problem(self) -> str:
        for node in self._nodes:
            for name in _bindings(node):
                if self._bound and name == self.old and not self._is_ours(node):
                    return f"line {_line(node)} calls something else {self.old}"
                if self._bound and name == self.new:
                    return f"line {_line(node)} has {self.new} already; one file uses both revisions"
        if any(_imports_from(node, f"{NAMESPACE}.{self.new}") for node in self._nodes):
            return f"it imports {self.new} already; one file uses both revisions"
        return ""

    def _is_ours(self, node: ast.AST) -> bool:
        match node:
            case ast.ImportFrom():
                return self._offers(node) and all(
                    alias.name == self.old for alias in node.names if (alias.asname or alias.name) == self.old
                )
            case ast.Import(names=aliases):
                return all(self._leads(alias.name) for alias in aliases if alias.asname == self.old)
            case _:
                return False


def _bindings(node: ast.AST) -> list[str]:
    """The names to which a node itself gives a meaning."""
    match node:
        case ast.Import(names=aliases):
            return [alias.asname or alias.name.partition(".")[0] for alias in aliases]
        case ast.ImportFrom(names=aliases):
            return [alias.asname or alias.name for alias in aliases]
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.MatchMapping(rest=str(name)):
            return [name]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
        case _:
            return []


def _imports_from(node: ast.AST, package: str) -> bool:
    """Whether a node imports something of a package."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level == 0:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    return any(f"{name}.".startswith(f"{package}.") for name in names)


def _named(node: ast.AST, name: str) -> Spot:
    """Where the name of a `Name`, or of an `Attribute`, stands."""
    if isinstance(node, ast.Attribute):
        return Spot(node.end_lineno or node.lineno, (node.end_col_offset or 0) - len(name))
    assert isinstance(node, ast.Name)
    return Spot(node.lineno, node.col_offset)


def _call(node: ast.AST, name: str) -> None:
    """Gives a `Name`, or an `Attribute`, another name."""
    if isinstance(node, ast.Attribute):
        node.attr = name
    elif isinstance(node, ast.Name):
        node.id = name


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 1))
