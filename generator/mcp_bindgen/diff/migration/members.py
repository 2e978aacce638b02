"""What attributes are, and what their use says."""

from __future__ import annotations

import ast

from mcp_bindgen.protocol.model import Array, Field, Map, Ref

from .bindings import Bindings
from .values import (
    Call,
    Class,
    Data,
    Function,
    Module,
    Package,
    Pending,
    Thing,
    Value,
    alternatives,
    either,
)

_PARSERS = frozenset({"model_validate", "model_validate_json", "model_validate_strings", "model_construct"})


class Members:
    """Attributes of values.

    Args:
        bindings: The old bindings.
    """

    def __init__(self, bindings: Bindings) -> None:
        self.bindings, self.notes = bindings, bindings.notes
        self.surface = bindings.surface

    def of(self, base: Value | None, name: str, node: ast.Attribute) -> Value | None:
        """What an attribute is; its use is noted."""
        match base:
            case Package() | Module():
                found = self.bindings.member(base, name, self.notes.tail(node))
                if isinstance(found, Package) and found.name == self.bindings.package:
                    self.notes.imported(self.notes.start(node))
                return found
            case Class():
                return self.of_class(base, name, node)
            case Thing(of, sure):
                return self.of_thing(base, of, name, node, sure=sure)
            case Data():
                return self.of_data(base, name, node)
            case _:
                return None

    def of_class(self, of: Class, name: str, node: ast.Attribute) -> Value | None:
        """What an attribute of a class is."""
        if of.has(name):
            return of.member(name)
        if of.definition is not None:
            return Function(self.bindings.instance(of)) if name in _PARSERS else None
        if of.owner is not None:
            if name in ("connect", "connected"):
                return Function(Pending(Thing(of)))
            self.notes.stub(self.notes.tail(node), of.owner, name)
        return None

    def of_thing(self, base: Thing, of: Class, name: str, node: ast.Attribute, *, sure: bool) -> Value | None:
        """What an attribute of an object is."""
        if of.has(name):
            return of.member(name)
        if of.definition is not None:
            return self.of_data(Data(Ref(of.definition), sure), name, node)
        if of.owner is None:
            return None
        if name == "with_options":
            return Function(base)
        if name == "ask" and of.owner == "Context":
            self.notes.asked(self.notes.tail(node), sure=sure)
            return Call(of.owner, name, sure)
        self.notes.stub(self.notes.tail(node), of.owner, name, sure=sure)
        known = (of.owner, name) in self.surface.calls or (of.owner, name) in self.surface.walks
        return Call(of.owner, name, sure) if known else None

    def of_data(self, data: Data, name: str, node: ast.Attribute) -> Value | None:
        """What a field is, or a method that every value of its kind has."""
        types = alternatives(data.type, self.surface.protocol)
        if name == "model_copy":
            return Function(data)
        if any(isinstance(type, Map) for type in types):
            held = [Data(type.values, data.sure) for type in types if isinstance(type, Map)]
            match name:
                case "get" | "pop" | "setdefault":
                    return Function(either(held))
                case "values":
                    return Function(Data(Array(held[0].type), data.sure))
                case _:
                    return None
        owners = self.owners(data, name)
        loads = isinstance(node.ctx, ast.Load)
        effect = self.notes.rules.types.read if loads else self.notes.rules.types.written
        affected = [definition for definition, _ in owners if effect(definition, name)]
        for definition in affected:
            sure = data.sure and len(affected) == len(owners)
            self.notes.add(self.notes.tail(node), f"types.{definition}.{name}", effect(definition, name), sure=sure)
        return either(Data(field.type, data.sure) for _, field in owners)

    def owners(self, data: Data, name: str) -> list[tuple[str, Field]]:
        """The classes that a value may be of and that have a field, with that field."""
        names = [type.name for type in alternatives(data.type, self.surface.protocol) if isinstance(type, Ref)]
        found = [(definition, self.surface.fields(definition).get(name)) for definition in names]
        return [(definition, field) for definition, field in found if field is not None]

    def set(self, base: Value | None, name: str, value: Value | None, node: ast.Attribute) -> None:
        """Notes that an attribute is given a value."""
        match base:
            case Thing(of) if self.bindings.is_own(of):
                of.members[name] = either([of.members[name], value]) if name in of.members else value
            case Data():
                self.of_data(base, name, node)
            case _:
                return

    def question(self, node: ast.Call, stub: Call, params: Value | None) -> Value | None:
        """Notes that something is asked; gives the answer."""
        types = alternatives(params.type, self.surface.protocol) if isinstance(params, Data) else []
        names = [type.name for type in types if isinstance(type, Ref)]
        place = self.notes.tail(node.func) if isinstance(node.func, ast.Attribute) else self.notes.start(node)
        found: list[Value | None] = []
        for name in names:
            self.notes.question(place, name, sure=stub.sure and len(names) == 1)
            method = self.surface.questions.get(name)
            found.append(Data(method.result) if method is not None and method.result is not None else None)
        return Pending(either(found)) if found else None
