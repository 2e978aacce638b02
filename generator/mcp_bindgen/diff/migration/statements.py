"""Reads the statements of a file, in the order in which they run."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from .annotations import ITERATORS, annotated, last_name
from .expressions import Expressions
from .imports import Imports
from .patterns import bind_pattern
from .scope import Scope
from .surface import Owner
from .values import Class, Data, Function, Pending, Thing, Value, item

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Statements:
    """Reads one file.

    Args:
        expressions: Reads its expressions.
        imports: Reads its imports.
    """

    def __init__(self, expressions: Expressions, imports: Imports) -> None:
        self.read, self.imports = expressions, imports
        self.bindings, self.notes = expressions.bindings, expressions.notes
        self._owner: Class | None = None
        self._waiting: list[tuple[_Function, Scope, Class | None]] = []

    def file(self, tree: ast.Module) -> None:
        """Reads a file: its top first, then the bodies of its functions, constructors before others."""
        self.body(tree.body)
        while self._waiting:
            self._waiting.sort(key=lambda one: one[0].name != "__init__")
            self._function_body(*self._waiting.pop(0))

    def body(self, statements: Iterable[ast.stmt]) -> None:
        """Reads some statements."""
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """Reads a statement."""
        read = self.read
        match node:
            case ast.Import(names=aliases):
                self.imports.plain(aliases)
            case ast.ImportFrom():
                self.imports.names(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node)
            case ast.ClassDef():
                self._class(node)
            case ast.Assign(targets=targets, value=value):
                self._assign(targets, value)
            case ast.AnnAssign(target=target, annotation=annotation, value=value):
                found = annotated(annotation, read)
                given = read.value(value) if value is not None else None
                read.assign(target, found if found is not None else given)
            case ast.AugAssign(target=target, value=value):
                read.value(value)
                read.value(target)
            case ast.If(test=test, body=body, orelse=other):
                self._if(test, body, other)
            case ast.For(target=target, iter=iterated) | ast.AsyncFor(target=target, iter=iterated):
                self._for(target, iterated, node.body)
                self.body(node.orelse)
            case ast.While(test=test, body=body, orelse=other):
                self._if(test, body, [])
                self.body(other)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                self._with(items)
                self.body(body)
            case ast.Try() | ast.TryStar():
                self._try(node)
            case ast.Match(subject=subject, cases=cases):
                self._match(subject, cases)
            case ast.Assert(test=test, msg=message):
                read.value(test)
                read.narrow(test)
                if message is not None:
                    read.value(message)
            case _:
                read.children(node)

    # --- branches -----------------------------------------------------------------------------------------------

    def _for(self, target: ast.expr, iterated: ast.expr, body: list[ast.stmt]) -> None:
        with self.read.scope.branches() as branches:
            with branches.branch():
                self.read.loop(target, iterated)
                self.body(body)
            branches.skipped()

    def _if(self, test: ast.expr, body: list[ast.stmt], other: list[ast.stmt]) -> None:
        self.read.value(test)
        with self.read.scope.branches() as branches:
            with branches.branch(leaves=_leaves(body)):
                self.read.narrow(test)
                self.body(body)
            with branches.branch(leaves=_leaves(other)):
                if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                    self.read.narrow(test.operand)
                self.body(other)

    def _try(self, node: ast.Try | ast.TryStar) -> None:
        with self.read.scope.branches() as branches:
            with branches.branch(leaves=_leaves(node.body)):
                self.body(node.body)
                self.body(node.orelse)
            for handler in node.handlers:
                with branches.branch(leaves=_leaves(handler.body)):
                    if handler.type is not None:
                        self.read.value(handler.type)
                    if handler.name is not None:
                        self.read.scope.bind(handler.name, None)
                    self.body(handler.body)
        self.body(node.finalbody)

    def _match(self, subject: ast.expr, cases: list[ast.match_case]) -> None:
        value = self.read.value(subject)
        with self.read.scope.branches() as branches:
            for case in cases:
                with branches.branch(leaves=_leaves(case.body)):
                    narrowed = bind_pattern(case.pattern, value, self.read)
                    if isinstance(subject, ast.Name):
                        self.read.scope.bind(subject.id, narrowed)
                    if case.guard is not None:
                        self.read.value(case.guard)
                    self.body(case.body)
            branches.skipped()

    def _with(self, items: list[ast.withitem]) -> None:
        for one in items:
            found = self.read.value(one.context_expr)
            if one.optional_vars is not None:
                self.read.assign(one.optional_vars, found.value if isinstance(found, Pending) else None)

    def _assign(self, targets: list[ast.expr], value: ast.expr) -> None:
        match targets, value:
            case [ast.Tuple(elts=names)], ast.Tuple(elts=values) if len(names) == len(values):
                for name, found in zip(names, [self.read.value(one) for one in values], strict=True):
                    self.read.assign(name, found)
            case _:
                found = self.read.value(value)
                for target in targets:
                    self.read.assign(target, found)

    # --- functions and classes ----------------------------------------------------------------------------------

    def _function(self, node: _Function) -> None:
        names = [last_name(one) for one in node.decorator_list]
        for decorator in node.decorator_list:
            self.read.value(decorator)
        result = annotated(node.returns, self.read) if node.returns is not None else None
        for argument in _arguments(node.args):
            if argument.annotation is not None:
                annotated(argument.annotation, self.read)
        for default in (*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)):
            self.read.value(default)
        yields = node.returns is not None and last_name(node.returns) in ITERATORS
        if isinstance(node, ast.AsyncFunctionDef) and not yields:
            result = Pending(result)
        if "contextmanager" in names:
            result = Pending(item(result, self.read.protocol))
        value = result if "property" in names or "cached_property" in names else Function(result)
        self.read.scope.bind(node.name, value)
        if self._owner is not None and self._owner.owner is not None:
            self._handler(node, self._owner.owner, result)
            self.notes.stub(self.notes.header(node), self._owner.owner, node.name)
        self._waiting.append((node, self.read.scope, self.read.inside))

    def _handler(self, node: _Function, owner: Owner, result: Value | None) -> None:
        """Notes a handler, with what it says that it takes and answers."""
        taken = node.args.args[1].annotation if len(node.args.args) > 2 else None
        params = annotated(taken, self.read) if taken is not None else None
        answer = result.value if isinstance(result, Pending) else result
        self.notes.handler(self.notes.header(node), owner, node.name, params, answer)

    def _function_body(self, node: _Function, around: Scope, inside: Class | None) -> None:
        self.read.scope, self.read.inside = Scope(around), inside
        arguments = _arguments(node.args)
        for argument in arguments:
            given = annotated(argument.annotation, self.read) if argument.annotation is not None else None
            self.read.scope.bind(argument.arg, given)
        for extra in (node.args.vararg, node.args.kwarg):
            if extra is not None:
                self.read.scope.bind(extra.arg, None)
        if inside is not None and around.hidden:
            self._self(node, arguments, inside)
        self.body(node.body)

    def _self(self, node: _Function, arguments: list[ast.arg], inside: Class) -> None:
        """Gives the arguments of a method what is known of them: itself, and what a handler takes."""
        names = [last_name(one) for one in node.decorator_list]
        if "staticmethod" in names or not arguments:
            return
        self.read.scope.bind(arguments[0].arg, inside if "classmethod" in names else self.bindings.instance(inside))
        if inside.owner is None or (inside.owner, node.name) not in self.bindings.surface.handlers:
            return
        method = self.bindings.surface.handlers[inside.owner, node.name]
        context = Thing(self.bindings.owner("Context")) if inside.owner == "Server" else None
        taken: list[Value | None] = [*([Data(method.params)] if method.params is not None else []), context]
        for argument, value in zip(arguments[1:], taken, strict=False):
            if argument.annotation is None:
                self.read.scope.bind(argument.arg, value)

    def _class(self, node: ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self.read.value(decorator)
        bases = [found for base in node.bases if isinstance(found := self.read.value(base), Class)]
        for keyword in node.keywords:
            self.read.value(keyword.value)
        own = tuple(base for base in bases if self.bindings.is_own(base))
        of = Class(
            next((base.owner for base in bases if base.owner is not None), None),
            next((base.definition for base in bases if base.definition is not None), None),
            bases=own,
        )
        self.read.scope.bind(node.name, of)
        around, outer, inside = self.read.scope, self._owner, self.read.inside
        self.read.scope, self._owner, self.read.inside = Scope(around, hidden=True), of, of
        self.body(node.body)
        of.members.update({name: binding.value for name, binding in self.read.scope.names.items()})
        self.read.scope, self._owner, self.read.inside = around, outer, inside


def _arguments(node: ast.arguments) -> list[ast.arg]:
    return [*node.posonlyargs, *node.args, *node.kwonlyargs]


def _leaves(body: list[ast.stmt]) -> bool:
    """Whether what follows is not reached from here."""
    return bool(body) and isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
