"""Finds what a module uses of the bindings, and says what became of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from mcp_bindgen.protocol.model import Ref, Type, Union

from .changes import Change, Changes
from .project import Module
from .result import Place, Use
from .typecheck import TypedCode


class Uses(ast.NodeVisitor):
    """The uses in one module.

    Attributes:
        imports: Where the bindings are imported.

    Args:
        module: The module; its lines are numbered as in `types`.
        name: Its absolute name.
        package: The import name of the bindings.
        types: What expressions are.
        changes: What became of the bindings.
        offset: How many lines there are before the module.
    """

    def __init__(
        self, module: Module, name: str, package: str, types: TypedCode, changes: Changes, offset: int
    ) -> None:
        self._module, self._name, self._package, self._offset = module, name, package, offset
        self._types, self._changes = types, changes
        self._found: dict[Use, None] = {}
        self._rebound: set[str] = set()
        self.imports: dict[Place, None] = {}

    def all(self) -> list[Use]:
        """Return what is used and has changed, in the order of the file."""
        for statement in self._module.tree.body:
            self.visit(statement)
            if isinstance(statement, ast.Assign):  # mypy takes an imported name for what was imported, come what may
                names = [one for one in statement.targets if isinstance(one, ast.Name)]
                self._rebound |= {one.id for one in names if self._refers_to(one) is not None}
        return sorted(self._found, key=lambda use: (use.place.line, use.place.column, use.name, not use.certain))

    # --- places -------------------------------------------------------------------------------------------------

    def _place(self, line: int, offset: int) -> Place:
        return self._module.place(line - self._offset, offset)

    def _start(self, node: ast.expr | ast.keyword | ast.alias | ast.pattern) -> Place:
        return self._place(node.lineno, node.col_offset)

    def _tail(self, node: ast.expr) -> Place:
        """Return where the last name of an expression stands."""
        if not isinstance(node, ast.Attribute):
            return self._start(node)
        end = node.end_col_offset or 0
        return self._place(node.end_lineno or node.lineno, end - len(node.attr.encode()))

    # --- what is used -------------------------------------------------------------------------------------------

    def _add(self, place: Place, label: str, changes: Iterable[Change], *, sure: bool = True) -> None:
        for change in changes:
            self._found[Use(place, label, change, sure)] = None

    def _note(self, place: Place, name: str) -> None:
        self._add(place, name, self._of(name))

    def _of(self, name: str, given: Type | None = None) -> list[Change]:
        """Return what became of something that is given a value of a type, or has one."""
        changes = self._changes.of.get(name, [])
        return [one for one in changes if given is None or not one.tolerates(given)]

    def _refers_to(self, node: ast.expr) -> str | None:
        root = node
        while isinstance(root, ast.Attribute):
            root = root.value
        return None if isinstance(root, ast.Name) and root.id in self._rebound else self._types.refers_to(node)

    def visit_Import(self, node: ast.Import) -> None:
        """Note imports of the bindings."""
        for alias in node.names:
            if self._is_ours(alias.name):
                self.imports[self._start(alias)] = None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Note imports of the bindings, and what is imported of them."""
        base = self._module.absolute(node, self._name)
        for alias in node.names:
            whole = base if alias.name == "*" else f"{base}.{alias.name}"
            if self._is_ours(whole):
                place = self._start(alias) if alias.name == "*" else self._place(node.lineno, node.col_offset)
                self.imports[place] = None
                self._note(self._start(alias), whole.removeprefix(f"{self._package}."))

    def _is_ours(self, name: str) -> bool:
        return name == self._package or name.startswith(f"{self._package}.")

    def visit_Name(self, node: ast.Name) -> None:
        """Note a name that was imported under its own name."""
        name = self._refers_to(node)
        if name is not None and name.rpartition(".")[2] == node.id:
            self._note(self._start(node), name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Note a name in a module, a member of an object, a call."""
        constant, name = self._refers_to(node.value) or "", self._refers_to(node)
        if node.attr == "name" and constant.startswith("methods."):
            self._add(self._tail(node.value), constant, [one for one in self._of(constant) if one.kind != "changed"])
            return
        if name == "":
            self.imports[self._start(node)] = None
        elif name is not None:
            self._note(self._tail(node), name)
        else:
            self._member(node)
        self.generic_visit(node)

    def _member(self, node: ast.Attribute) -> None:
        names, sure = self._types.attribute(node)
        given = not isinstance(node.ctx, ast.Load)
        changes = {
            name: self._of(f"{name.removesuffix(f'.{node.attr}')}({node.attr}=)" if given else name) for name in names
        }
        affected = [name for name in changes if changes[name]]
        for name in affected:
            self._add(self._tail(node), name, changes[name], sure=sure and len(affected) == len(changes))

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Note a method that is looked up by its name on the wire."""
        if self._refers_to(node.value) == "methods.METHODS" and isinstance(node.slice, ast.Constant):
            constant = self._changes.old.constants.get(("methods", str(node.slice.value)))
            changes = self._of(constant.name) if constant is not None else []
            kept = [one for one in changes if one.kind != "renamed"]
            self._add(self._start(node.slice), f"methods.METHODS[{node.slice.value!r}]", kept)
        self.generic_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        """Note the fields of a pattern."""
        name = self._refers_to(node.cls)
        for attribute, pattern in zip(node.kwd_attrs, node.kwd_patterns, strict=True):
            self._note(self._start(pattern), f"{name}.{attribute}")
        self.generic_visit(node)

    # --- calls --------------------------------------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> None:
        """Note the arguments of a constructor or of a stub."""
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[base, ast.Constant(value=str(name)) as constant, *_]):
                self._note(self._start(constant), f"{self._refers_to(base)}.{name}")
            case _:
                pass
        names, sure, extended = self._types.called(node)
        for name in names:
            if name == "Context.ask_params":
                self._question(node, sure=sure)
            else:
                self._arguments(node, name, sure=sure, extended=extended)
        self.generic_visit(node)

    def _arguments(self, node: ast.Call, name: str, *, sure: bool, extended: bool) -> None:
        """Note the arguments; what is missing is certain unless a class of the user's may give it."""
        given: set[str | None] = {keyword.arg for keyword in node.keywords}
        for keyword in node.keywords:
            label = f"{name}({keyword.arg}=)"
            self._add(self._start(keyword), label, self._of(label, self._types.type(keyword.value)), sure=sure)
        for index, (argument, known) in enumerate(zip(node.args, self._changes.positional.get(name, ()), strict=False)):
            if isinstance(argument, ast.Starred):
                break
            given.add(known)
            label = f"{name}({known}=)"
            changes = self._of(label, self._types.type(argument)) or self._of(f"{name}({index})")
            self._add(self._start(argument), label, changes, sure=sure)
        open_ended = extended or None in given or any(isinstance(argument, ast.Starred) for argument in node.args)
        for missing, change in self._changes.needed.get(name, {}).items():
            if missing not in given:
                self._add(self._tail(node.func), f"{name}({missing}=)", [change], sure=sure and not open_ended)

    def _question(self, node: ast.Call, *, sure: bool) -> None:
        """Note what is asked, by the class of the params."""
        named = [keyword.value for keyword in node.keywords if keyword.arg == "params"]
        for params in (*node.args[1:2], *named):
            type = self._types.type(params)
            options = type.members if isinstance(type, Union) else (type,)
            for name in [one.name for one in options if isinstance(one, Ref)]:
                label = f"Context.ask_params({name})"
                self._add(self._tail(node.func), label, self._of(label), sure=sure and len(options) == 1)

    # --- handlers -----------------------------------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Note the handlers and stubs that a class overrides."""
        owner = self._types.extended(node)
        for method in node.body:
            if owner is not None and isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                name, place = f"{owner}.{method.name}", self._module.header(method, self._offset)
                taken, given = self._types.signature(node, method.name)
                changes = [*self._of(name), *self._of(f"{name}(params)", taken), *self._of(f"{name}->", given)]
                self._add(place, name, changes)
        self.generic_visit(node)
