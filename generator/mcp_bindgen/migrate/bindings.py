"""The names that the bindings of a revision offer to Python code, such as `Client.call_tool`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Literal, NamedTuple

from mcp_bindgen.diff.finding import Message
from mcp_bindgen.emit.python import calls, naming
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.ir.model import Field, Method, Protocol, Ref, Sender, Type
from mcp_bindgen.spec import Store

ASKING = ("ask_by", "ask_params")
"""Methods of `Context` that ask any question."""


class Parameter(NamedTuple):
    """A field of a class, or an argument of a call, under its Python name."""

    name: str
    field: Field
    is_metadata: bool = False
    is_positional: bool = False


class Stub(NamedTuple):
    """A method of the protocol as code sees it.

    Attributes:
        role: Its use: something to call, to walk through a list with or to override, or a constant.
        owner: The class or module that has it.
        short: Its name there.
        method: The method of the protocol.
        sender: The side that sends it.
    """

    role: calls.Role | Literal["constant"]
    owner: str
    short: str
    method: Method
    sender: Sender

    @property
    def name(self) -> str:
        """The name that code uses, e.g. `Client.call_tool`."""
        return f"{self.owner}.{self.short}"

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity of the stub in all revisions."""
        return self.role, self.owner, self.method.name

    @property
    def message(self) -> str:
        """The message, as findings call it."""
        return str(Message.of(self.method, self.sender))


class Bindings:
    """The bindings of one revision.

    Attributes:
        protocol: The revision.
        stubs: Name -> stub.
        errors: Constant -> error.
    """

    def __init__(self, model: Protocol) -> None:
        self.protocol = protocol = lower(model)
        self.stubs = {stub.name: stub for stub in self._all()}
        self.errors = {protocol.constants[error.code]: error for error in protocol.errors}

    @cached_property
    def by_key(self) -> dict[tuple[str, str, str], Stub]:
        """The stubs by their identity."""
        return {stub.key: stub for stub in self.stubs.values()}

    def _all(self) -> Iterator[Stub]:
        for method in self.protocol.methods:
            yield Stub("constant", "methods", naming.descriptor(self.protocol.stub(method)), method, method.senders[0])
            for role, owner, name, sender in calls.members(self.protocol, method):
                yield Stub(role, owner, name, method, sender)

    def class_of(self, definition: str) -> str | None:
        """Return the class that a name stands for, aliases resolved; `None` if it is no class."""
        return self.protocol.class_of(Ref(definition))

    def is_alias(self, definition: str) -> bool:
        """Return whether a definition exists and is no class."""
        return definition in self.protocol.definitions and self.class_of(definition) is None

    def fields(self, definition: str) -> list[Parameter]:
        """Return the fields of a class; an empty list if the definition is no class."""
        fields = self.protocol.fields_of(Ref(definition))
        return [Parameter(self.protocol.attribute(Ref(definition), one.wire), one) for one in fields]

    def arguments(self, method: Method) -> list[Parameter] | None:
        """Return the arguments of a call, positional ones first; `None` if it takes its params as a whole."""
        fields = calls.call_arguments(self.protocol, method)
        if fields is None:
            return None
        first = calls.positional(self.protocol, method, fields)
        ordered = [*first, *(one for one in fields if one not in first)]
        names = [naming.argument(self.protocol.attribute(method.params, one.wire)) for one in ordered]
        return [
            Parameter(name, one, calls.is_metadata(one), index < len(first))
            for index, (name, one) in enumerate(zip(names, ordered, strict=True))
        ]


def shortcuts() -> Mapping[str, str]:
    """Return method -> the member of `Context` or `Client` that sends it, such as `Context.ask`."""
    found: Mapping[str, str] = Store().semantics["shortcuts"]
    return found


def name_of(type: Type | None) -> str:
    """Return the name of the definition that params or a result are; empty if they are inline or absent."""
    return type.name if isinstance(type, Ref) else ""
