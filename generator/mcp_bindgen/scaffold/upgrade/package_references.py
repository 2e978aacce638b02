"""Find where a Python file imports the bindings of a revision, and under which names it refers to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import libcst as cst
from libcst.helpers import get_full_name_for_node
from libcst.metadata import ImportAssignment, MetadataWrapper, PositionProvider, Scope, ScopeProvider

NAMESPACE = "mcp_bindgen"


class PackageReferences(cst.CSTVisitor):
    """The imports of a package of bindings in one file.

    Args:
        old: The name of the package inside of our namespace.
        new: The name of the package that is to replace it.
        own: The top-level names of the project itself, whose modules may hand the package on.

    Attributes:
        bound: Whether the package is known by its own name in this file.
        namespaces: The names by which our namespace is known.
        uses_new: Whether the file imports the new package already.
    """

    def __init__(self, old: str, new: str, own: frozenset[str]) -> None:
        super().__init__()
        self.old, self.new, self.own = old, new, own
        self.bound = False
        self.namespaces: set[str] = set()
        self.uses_new = False

    def visit_Import(self, node: cst.Import) -> bool:
        """Note `import mcp_bindgen...`."""
        for alias in node.names:
            name, given = dotted(alias.name), alias_name(alias)
            if name.partition(".")[0] == NAMESPACE and (given is None or name == NAMESPACE):
                self.namespaces.add(given or NAMESPACE)
            self.bound |= self.is_package(name) and given == self.old
            self.uses_new |= _is_inside(name, self.new)
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        """Note `from mcp_bindgen... import ...`."""
        module = dotted(node.module)
        names = imported(node)
        if not node.relative:
            self.uses_new |= any(_is_inside(f"{module}.{dotted(alias.name)}", self.new) for alias in names)
            self.uses_new |= _is_inside(module, self.new)
        if self.may_offer(node):
            self.bound |= isinstance(node.names, cst.ImportStar) and module != NAMESPACE
            self.bound |= any(dotted(a.name) == self.old and alias_name(a) in (None, self.old) for a in names)
        return False

    def is_package(self, name: str) -> bool:
        """Return whether a dotted name is the old package, or something in it."""
        return _is_inside(name, self.old)

    def may_offer(self, node: cst.ImportFrom) -> bool:
        """Return whether the old package can be imported from there: from our namespace, or a module of the project."""
        module = dotted(node.module)
        if node.relative:
            return bool(self.own)
        return module == NAMESPACE or module.partition(".")[0] in self.own

    def count(self, expression: str) -> int:
        """Count the references to the package in the text of an expression, such as a quoted annotation."""
        try:
            nodes = list(ast.walk(ast.parse(expression, mode="eval")))
        except (SyntaxError, ValueError):
            return 0
        named = sum(isinstance(node, ast.Name) and node.id == self.old for node in nodes) if self.bound else 0
        within = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == self.old]
        return named + sum(isinstance(node.value, ast.Name) and node.value.id in self.namespaces for node in within)

    def problem(self, module: cst.Module) -> str:
        """Say why references cannot be renamed: both packages are used, or a name means something else too."""
        if self.uses_new:
            return f"it imports {self.new} already; one file uses both revisions"
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        scopes = {scope for scope in wrapper.resolve(ScopeProvider).values() if scope is not None}
        lines = wrapper.resolve(PositionProvider)
        for node in self._others(scopes) if self.bound else ():
            return f"line {lines[node].start.line} calls something else {self.old}"
        return ""

    def _others(self, scopes: set[Scope]) -> Iterator[cst.CSTNode]:
        """Find what binds the name of the old or the new package to something else."""
        for scope in scopes:
            for assignment in (*scope[self.old], *scope[self.new]):
                node = getattr(assignment, "node", None)
                ours = isinstance(assignment, ImportAssignment) and assignment.name == self.old
                if node is not None and not (ours and self._is_import_of_package(node)):
                    yield node

    def _is_import_of_package(self, node: cst.CSTNode) -> bool:
        match node:
            case cst.Import(names=aliases):
                return all(self.is_package(dotted(a.name)) for a in aliases if alias_name(a) == self.old)
            case cst.ImportFrom():
                named = [a for a in imported(node) if (alias_name(a) or dotted(a.name)) == self.old]
                return self.may_offer(node) and all(dotted(a.name) == self.old for a in named)
            case _:
                return False


def dotted(node: cst.CSTNode | None) -> str:
    """Return the dotted name that a node spells, empty for none."""
    return (get_full_name_for_node(node) or "") if node is not None else ""


def alias_name(alias: cst.ImportAlias) -> str | None:
    """Return the name after `as`."""
    return dotted(alias.asname.name) if alias.asname is not None else None


def imported(node: cst.ImportFrom) -> Sequence[cst.ImportAlias]:
    """Return the names that an import lists."""
    return () if isinstance(node.names, cst.ImportStar) else node.names


def _is_inside(name: str, package: str) -> bool:
    return f"{name}.".startswith(f"{NAMESPACE}.{package}.")
