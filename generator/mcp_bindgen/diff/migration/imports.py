"""Reads imports: of the bindings, and of other modules of the project."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from .expressions import Expressions
from .values import Class, Module, Package, Thing, Value

Exports = Callable[[str], Mapping[str, Value | None] | None]
"""Gives the names of another module of the project, by its absolute name."""


class Imports:
    """Reads the imports of one file.

    Args:
        expressions: Reads its expressions.
        module: Its dotted name, with `__init__` for the module of a package.
        exports: What other modules of the project have.
    """

    def __init__(self, expressions: Expressions, module: str, exports: Exports) -> None:
        self.read, self.bindings, self.notes = expressions, expressions.bindings, expressions.notes
        self._module, self._exports = module, exports

    def plain(self, aliases: list[ast.alias]) -> None:
        """Reads `import ...`."""
        for alias in aliases:
            name = alias.name if alias.asname is not None else alias.name.partition(".")[0]
            if self._is_ours(alias.name):
                self.notes.imported(self.notes.start(alias))
            self.read.scope.bind(alias.asname or name, self.bindings.module(name) or self._own_module(name))

    def names(self, node: ast.ImportFrom) -> None:
        """Reads `from ... import ...`."""
        base = self._absolute(node)
        module = self.bindings.module(base)
        names = self._exports(base) or {}
        for alias in node.names:
            if alias.name == "*":
                self._all(module, names, alias)
                continue
            name, place = alias.asname or alias.name, self.notes.start(alias)
            if module is None:
                known = names[alias.name] if alias.name in names else self._own_module(f"{base}.{alias.name}")
                self.read.scope.bind(name, known)
                continue
            if self._is_ours(base) or self._is_ours(f"{base}.{alias.name}"):
                self.notes.imported(self.notes.place(node.lineno, node.col_offset))
            origin = module if name == alias.name else None
            self.read.scope.bind(name, self.bindings.member(module, alias.name, place), origin)

    def _all(self, module: Package | Module | None, names: Mapping[str, Value | None], alias: ast.alias) -> None:
        if module is None:
            for name, value in names.items():
                self.read.scope.bind(name, value)
            return
        self.notes.imported(self.notes.start(alias))
        for name in self.bindings.names(module):
            self.read.scope.bind(name, self.bindings.member(module, name, None), module)

    def _is_ours(self, name: str) -> bool:
        return name == self.bindings.package or name.startswith(f"{self.bindings.package}.")

    def _own_module(self, name: str) -> Value | None:
        """A module of the project as an object with its names as members."""
        found = self._exports(name)
        return Thing(Class(members=dict(found))) if found is not None else None

    def _absolute(self, node: ast.ImportFrom) -> str:
        """The absolute name of the module that is imported from."""
        if node.level == 0:
            return node.module or ""
        above = self._module.split(".")[: -node.level]
        return ".".join([*above, *([node.module] if node.module else [])])
