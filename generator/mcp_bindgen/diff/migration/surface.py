"""What generated bindings offer to Python code: classes, calls, handlers and constants, by their names in Python."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from mcp_bindgen.protocol import Protocol, calls, naming
from mcp_bindgen.protocol.calls import Walk
from mcp_bindgen.protocol.model import ErrorCode, Field, Method, Object, Ref, Sender

Owner = Literal["Client", "Server", "Context"]
"""A generated class that has stubs."""

SENDERS: Mapping[Owner, Sender] = {"Client": "client", "Context": "server"}
"""Class -> whose calls it has."""

RECEIVERS: Mapping[Owner, Sender] = {"Client": "client", "Server": "server"}
"""Class -> whose handlers it has."""


class Surface:
    """The bindings of one revision.

    Args:
        protocol: The revision.
    """

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol

    @cached_property
    def calls(self) -> dict[tuple[Owner, str], Method]:
        """Class and stub -> what it sends."""
        return {
            (owner, calls.call_name(method)): method
            for owner, sender in SENDERS.items()
            for method in self.protocol.methods
            if calls.sends(method, sender)
        }

    @cached_property
    def walks(self) -> dict[tuple[Owner, str], tuple[Method, Walk]]:
        """Class and stub -> the list that it walks through."""
        return {
            (owner, walk.name): (method, walk)
            for (owner, _), method in self.calls.items()
            if (walk := calls.walk(self.protocol, method)) is not None
        }

    @cached_property
    def handlers(self) -> dict[tuple[Owner, str], Method]:
        """Class and stub -> what it takes."""
        return {
            (owner, calls.handler_name(method, receiver)): method
            for owner, receiver in RECEIVERS.items()
            for method in self.protocol.methods
            if calls.receives(method, receiver)
        }

    @cached_property
    def questions(self) -> dict[str, Method]:
        """The class of the params -> what `Context.ask` asks."""
        return {name: method for method, classes in calls.questions(self.protocol) for name in classes}

    @cached_property
    def methods(self) -> dict[str, Method]:
        """Constant of `methods.py` -> the method."""
        return {naming.descriptor(method.stub): method for method in self.protocol.methods}

    @cached_property
    def by_wire(self) -> dict[str, Method]:
        """Wire name -> the method."""
        return {method.name: method for method in self.protocol.methods}

    @cached_property
    def errors(self) -> dict[str, ErrorCode]:
        """Constant of `errors.py` -> the error."""
        return {naming.constant(error.name): error for error in self.protocol.errors}

    def class_of(self, definition: str) -> str | None:
        """The class that a name stands for, whatever aliases it goes by; `None` where it is none."""
        type = self.protocol.definitions[definition].type
        while isinstance(type, Ref):
            definition, type = type.name, self.protocol.definitions[type.name].type
        return definition if isinstance(type, Object) else None

    def object(self, definition: str) -> Object | None:
        """The object that a name stands for; `None` for an alias of something else."""
        type = self.protocol.resolve(Ref(definition))
        return type if isinstance(type, Object) else None

    def fields(self, definition: str) -> dict[str, Field]:
        """The fields of a class, by their names in Python; none of what is no class."""
        found = self.object(definition)
        return {field.name: field for field in found.fields} if found else {}
