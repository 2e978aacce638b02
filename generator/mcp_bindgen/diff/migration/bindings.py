"""What the bindings of a revision offer to Python code, by the names that code uses: `Client.call_tool`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mcp_bindgen.protocol import calls, naming
from mcp_bindgen.protocol.model import Field, Method, Object, Protocol, Ref, Sender, Type, Union

from .assignable import MAPPING, NULL

SENDERS: Mapping[str, Sender] = {"Client": "client", "Context": "server"}
"""Class -> whose calls it has."""

RECEIVERS: Mapping[str, Sender] = {"Client": "client", "Server": "server"}
"""Class -> whose handlers it has."""


class Parameter(NamedTuple):
    """A field of a class as its constructor takes it, or an argument of a call.

    Attributes:
        name: Its name in Python.
        field: The field behind it.
        type: What it takes, apart from `None` for nothing.
    """

    name: str
    field: Field
    type: Type

    @property
    def may_omit(self) -> bool:
        """Whether it may be left out."""
        return not self.field.required or self.field.default is not None or self.type is MAPPING

    @property
    def whole(self) -> Type:
        """What it takes, and what reading the field gives."""
        return Union((self.type, NULL)) if self.may_omit and self.field.default is None else self.type


class Bindings:
    """The bindings of one revision.

    Attributes:
        calls: Stub -> what it sends.
        walks: Stub -> the list that it walks through.
        handlers: Stub -> what it takes.
        questions: The class of the params -> what `Context.ask` asks.
        methods: Constant -> the method.
        errors: Constant -> the error.
    """

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        methods = protocol.methods
        self.calls = {
            f"{owner}.{calls.call_name(method)}": method
            for owner, sender in SENDERS.items()
            for method in methods
            if calls.sends(method, sender)
        }
        self.walks = {
            f"{stub.partition('.')[0]}.{walk.name}": (method, walk)
            for stub, method in self.calls.items()
            if (walk := calls.walk(protocol, method)) is not None
        }
        self.handlers = {
            f"{owner}.{calls.handler_name(method, receiver)}": method
            for owner, receiver in RECEIVERS.items()
            for method in methods
            if calls.receives(method, receiver)
        }
        self.questions = {name: method for method, classes in calls.questions(protocol) for name in classes}
        self.methods = {naming.descriptor(method.stub): method for method in methods}
        self.errors = {naming.constant(error.name): error for error in protocol.errors}

    def class_of(self, definition: str) -> str | None:
        """The class that a name stands for, whatever aliases it goes by; `None` where it is none."""
        type = self.protocol.definitions[definition].type
        while isinstance(type, Ref):
            definition, type = type.name, self.protocol.definitions[type.name].type
        return definition if isinstance(type, Object) else None

    def fields(self, definition: str) -> list[Parameter]:
        """The fields of a class; none of what is no class."""
        type = self.protocol.resolve(Ref(definition))
        return [Parameter(one.name, one, one.type) for one in (type.fields if isinstance(type, Object) else ())]

    def arguments(self, method: Method) -> list[Parameter] | None:
        """The arguments of a call; `None` where it takes its params as a whole."""
        fields = calls.call_arguments(self.protocol, method)
        if fields is None:
            return None
        types = [MAPPING if calls.is_metadata(one) else one.type for one in fields]
        return [Parameter(naming.argument(one.name), one, type) for one, type in zip(fields, types, strict=True)]

    def by_wire(self, name: str) -> Method | None:
        """The method with a name on the wire."""
        return next((method for method in self.protocol.methods if method.name == name), None)
