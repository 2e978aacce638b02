"""Reads expressions: says what they are where that is clear, and notes what they use of the bindings."""

from __future__ import annotations

import ast

from mcp_bindgen.protocol.model import Array, Const, Map

from .annotations import annotated
from .bindings import Bindings
from .members import Members
from .scope import Scope
from .uses import Given
from .values import (
    Call,
    Class,
    Data,
    Function,
    Module,
    Package,
    Pending,
    Table,
    Thing,
    Value,
    either,
    item,
)

_SAME = frozenset({"list", "sorted", "tuple", "set", "frozenset", "reversed", "iter"})
_WAITING = frozenset({"wait_for", "shield", "create_task", "ensure_future"})


class Expressions:
    """Reads the expressions of one file.

    Args:
        bindings: The old bindings.
        scope: The names that are visible; statements change it as they go.
    """

    def __init__(self, bindings: Bindings, scope: Scope) -> None:
        self.bindings, self.notes, self.scope = bindings, bindings.notes, scope
        self.protocol = bindings.surface.protocol
        self.members = Members(bindings)
        self.inside: Class | None = None

    def value(self, node: ast.expr) -> Value | None:
        """What an expression is; `None` where that is not clear."""
        match node:
            case ast.Name(id=name):
                return self.named(node, name)
            case ast.Attribute(value=ast.Attribute(value=base, attr=name) as constant, attr="name") if self.value(
                base
            ) == Module("methods"):
                self.notes.method(self.notes.tail(constant), name, only_name=True)
                return None
            case ast.Attribute(value=base, attr=name):
                return self.members.of(self.value(base), name, node)
            case ast.Call():
                return self.call(node)
            case ast.Await(value=inner):
                waiting = self.value(inner)
                return waiting.value if isinstance(waiting, Pending) else None
            case ast.Subscript(value=base, slice=key):
                return self.element(self.value(base), key)
            case ast.BoolOp(values=values):
                return either([self.value(one) for one in values])
            case ast.IfExp(test=test, body=body, orelse=other):
                self.value(test)
                return either([self.value(body), self.value(other)])
            case ast.NamedExpr(target=ast.Name(id=name), value=inner):
                found = self.value(inner)
                self.scope.bind(name, found)
                return found
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return _listed([self.value(one) for one in items])
            case ast.ListComp(elt=one) | ast.SetComp(elt=one) | ast.GeneratorExp(elt=one):
                return self.comprehension(node.generators, [one])
            case ast.DictComp(key=key, value=one):
                found = self.comprehension(node.generators, [key, one])
                match found:
                    case Data(Array(held), sure):
                        return Data(Map(held), sure)
                    case _:
                        return None
            case ast.Lambda(args=arguments, body=body):
                self.function(arguments, body)
                return None
            case ast.Constant(value=constant):
                return Data(Const((constant,))) if isinstance(constant, str | int | float | None) else None
            case _:
                self.children(node)
                return None

    def children(self, node: ast.AST) -> None:
        """Reads what is inside of a node that says nothing by itself."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
            else:
                self.children(child)

    def named(self, node: ast.Name, name: str) -> Value | None:
        """What a name is; one that was imported under its own name is noted."""
        binding = self.scope.lookup(name)
        if binding is None:
            return None
        if binding.origin is not None and isinstance(node.ctx, ast.Load):
            self.bindings.member(binding.origin, name, self.notes.start(node))
        return binding.value

    def element(self, base: Value | None, key: ast.expr) -> Value | None:
        """What a subscript gives."""
        self.value(key)
        if isinstance(base, Table) and isinstance(key, ast.Constant):
            self.notes.wire(self.notes.start(key), str(key.value))
            return None
        if isinstance(key, ast.Slice):
            return base
        return item(base, self.protocol)

    # --- scopes inside of expressions ---------------------------------------------------------------------------

    def comprehension(self, generators: list[ast.comprehension], results: list[ast.expr]) -> Value | None:
        """A comprehension as a list of the last of its results."""
        around, self.scope = self.scope, Scope(self.scope)
        for generator in generators:
            self.loop(generator.target, generator.iter)
            for test in generator.ifs:
                self.value(test)
                self.narrow(test)
        found = [self.value(result) for result in results]
        self.scope = around
        return _listed(found[-1:])

    def function(self, arguments: ast.arguments, body: ast.expr) -> None:
        """Reads a lambda."""
        around, self.scope = self.scope, Scope(self.scope)
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            self.scope.bind(argument.arg, None)
        self.children(arguments)
        self.value(body)
        self.scope = around

    def loop(self, target: ast.expr, iterated: ast.expr) -> None:
        """Gives the target of a loop what it is in each round."""
        whole = self.value(iterated)
        match target, iterated:
            case ast.Tuple(elts=[_, one]), ast.Call(func=ast.Name(id="enumerate"), args=[inner, *_]):
                self.assign(target, None)
                self.assign(one, item(self.value(inner), self.protocol, key=True))
            case ast.Tuple(elts=[_, one]), ast.Call(func=ast.Attribute(value=inner, attr="items"), args=[]):
                self.assign(target, None)
                self.assign(one, item(self.value(inner), self.protocol))
            case ast.Tuple(elts=targets), ast.Call(func=ast.Name(id="zip"), args=lists):
                self.assign(target, None)
                for one, inner in zip(targets, lists, strict=False):
                    self.assign(one, item(self.value(inner), self.protocol, key=True))
            case _:
                waiting = whole.value if isinstance(whole, Pending) else item(whole, self.protocol, key=True)
                self.assign(target, waiting)

    def assign(self, target: ast.expr, value: Value | None) -> None:
        """Gives a target a value."""
        match target:
            case ast.Name(id=name):
                self.scope.bind(name, value)
            case ast.Attribute(value=base, attr=name):
                self.members.set(self.value(base), name, value, target)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for one in targets:
                    self.assign(one, None)
            case ast.Starred(value=inner):
                self.assign(inner, None)
            case _:
                self.value(target)

    def narrow(self, test: ast.expr) -> None:
        """Takes over what a test says about names, where it holds."""
        match test:
            case ast.BoolOp(op=ast.And(), values=values):
                for one in values:
                    self.narrow(one)
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), kind]):
                self.scope.bind(name, self.instance_of(kind))
            case _:
                return

    def instance_of(self, kind: ast.expr) -> Value | None:
        """What an object is that is an instance of a class, or of one of several."""
        kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
        found = [self.value(one) for one in kinds]
        return either(self.bindings.instance(one) if isinstance(one, Class) else None for one in found)

    # --- calls --------------------------------------------------------------------------------------------------

    def call(self, node: ast.Call) -> Value | None:
        """What a call gives."""
        called = self.value(node.func)
        given = {id(one): self.value(one) for one in (*node.args, *(keyword.value for keyword in node.keywords))}
        first = given[id(node.args[0])] if node.args else None
        match called:
            case Class():
                return self.constructed(node, called, given)
            case Call():
                return self.stub(node, called, given)
            case Function(result):
                return result
            case _:
                return self.known(node, first)

    def constructed(self, node: ast.Call, of: Class, given: Given) -> Value:
        """Notes a constructor; gives the object."""
        if of.definition is not None and self.bindings.surface.object(of.definition) is not None:
            self.notes.constructed(node, of.definition, given, own=self.bindings.is_own(of))
        return self.bindings.instance(of)

    def stub(self, node: ast.Call, stub: Call, given: Given) -> Value | None:
        """Notes a call of a stub; gives its answer."""
        surface = self.bindings.surface
        key = stub.owner, stub.name
        if stub.name == "ask":
            named = [keyword.value for keyword in node.keywords if keyword.arg == "params"]
            params = [given[id(one)] for one in (*node.args[1:2], *named)]
            return self.members.question(node, stub, params[0] if params else None)
        self.notes.called(node, stub.owner, stub.name, given, sure=stub.sure)
        if key in surface.walks:
            return Pending(Data(surface.walks[key][1].item, stub.sure))
        result = surface.calls[key].result if key in surface.calls else None
        return Pending(Data(result, stub.sure)) if result is not None else None

    def known(self, node: ast.Call, first: Value | None) -> Value | None:
        """What a few functions of Python give that everybody uses."""
        match node.func:
            case ast.Name(id="next") if self.scope.lookup("next") is None:
                return item(first, self.protocol, key=True)
            case ast.Name(id=name) if name in _SAME and self.scope.lookup(name) is None:
                found = item(first, self.protocol, key=True)
                return _listed([found]) if found is not None else None
            case ast.Name(id="super") if self.inside is not None:
                return Thing(Class(self.inside.owner, self.inside.definition, bases=self.inside.bases))
            case ast.Name(id="cast") | ast.Attribute(attr="cast") if node.args:
                return annotated(node.args[0], self)
            case ast.Name(id="getattr") if len(node.args) > 1:
                return self._dynamic(first, node.args[1])
            case ast.Attribute(attr="import_module") | ast.Name(id="import_module") if node.args:
                return self._imported(node.args[0])
            case ast.Attribute(attr="enter_async_context"):
                return first if isinstance(first, Pending) else None
            case ast.Attribute(attr="enter_context"):
                return first.value if isinstance(first, Pending) else None
            case ast.Attribute(attr=name) if name in _WAITING:
                return first if isinstance(first, Pending) else None
            case _:
                return None

    def _dynamic(self, base: Value | None, name: ast.expr) -> Value | None:
        """`getattr` with a name that stands there."""
        if isinstance(base, Package | Module) and isinstance(name, ast.Constant) and isinstance(name.value, str):
            return self.bindings.member(base, name.value, self.notes.start(name))
        return None

    def _imported(self, name: ast.expr) -> Value | None:
        """`import_module` with a name that stands there."""
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            return None
        found = self.bindings.module(name.value)
        if found is not None and name.value.startswith(self.bindings.package):
            self.notes.imported(self.notes.start(name))
        return found


def _listed(values: list[Value | None]) -> Value | None:
    """A list of some values."""
    found = either(values) if values else None
    return Data(Array(found.type), found.sure) if isinstance(found, Data) else None
