"""What the bindings of a revision offer to Python code, by the names that code uses: `Client.call_tool`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mcp_bindgen.protocol import calls, naming
from mcp_bindgen.protocol.model import Field, Method, Object, Protocol, Ref, Sender, Type, Union

from ..finding import Message
from ..reach import OTHER
from .assignable import MAPPING, NULL

SENDERS: Mapping[str, Sender] = {"Client": "client", "Context": "server"}
"""Class -> whose calls it has."""

RECEIVERS: Mapping[str, Sender] = {"Client": "client", "Server": "server"}
"""Class -> whose handlers it has."""


SHORTCUTS: Mapping[str, str] = {
    "elicitation/create": "ask",
    "roots/list": "roots",
    "sampling/createMessage": "sample",
}
"""Question -> what asks it on a context of the runtime, in every revision."""


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


class Stub(NamedTuple):
    """A method as code sees it: something to call or to override, or a constant.

    Attributes:
        owner: The class or the module that has it.
        short: Its name there.
        method: The method.
        sender: Who sends it.
        item: What it gives one by one, where it walks through a list.
    """

    owner: str
    short: str
    method: Method
    sender: Sender
    item: Type | None = None

    @property
    def name(self) -> str:
        """The name that code uses, e.g. `Client.call_tool`."""
        return f"{self.owner}.{self.short}"

    @property
    def message(self) -> str:
        """The message, as findings call it."""
        return str(Message.of(self.method, self.sender))


Stubs = dict[tuple[str, str], Stub]
"""Owner and name of a method on the wire -> the stub."""


class Bindings:
    """The bindings of one revision.

    Attributes:
        calls: What sends methods.
        walks: What walks through lists.
        handlers: What takes methods.
        constants: What names methods.
        questions: The class of the params -> what `Context.ask_params` asks.
        errors: Constant -> the error.
    """

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        methods = protocol.methods
        self.calls = _by_method(
            Stub(owner, calls.call_name(method), method, sender)
            for owner, sender in SENDERS.items()
            for method in methods
            if calls.sends(method, sender)
        )
        self.walks = _by_method(
            stub._replace(short=walk.name, item=walk.item)
            for stub in self.calls.values()
            if (walk := calls.walk(protocol, stub.method)) is not None
        )
        self.handlers = _by_method(
            Stub(owner, calls.handler_name(method, receiver), method, OTHER[receiver])
            for owner, receiver in RECEIVERS.items()
            for method in methods
            if calls.receives(method, receiver)
        )
        self.constants = _by_method(
            Stub("methods", naming.descriptor(method.stub), method, method.senders[0]) for method in methods
        )
        self.questions = {
            name: Stub("Context", f"ask_params({name})", method, "server")
            for method, classes in calls.questions(protocol)
            for name in classes
        }
        self.errors = {naming.constant(error.name): error for error in protocol.errors}

    def class_of(self, definition: str) -> str | None:
        """The class that a name stands for, whatever aliases it goes by; `None` where it is none."""
        type = self.protocol.definitions[definition].type
        while isinstance(type, Ref):
            definition, type = type.name, self.protocol.definitions[type.name].type
        return definition if isinstance(type, Object) else None

    def takes_any(self, definition: str) -> bool:
        """Tell whether the constructor of a class takes members without a name as keywords."""
        return calls.takes_any(self.protocol.definitions[definition])

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


def _by_method(stubs: Iterable[Stub]) -> Stubs:
    return {(stub.owner, stub.method.name): stub for stub in stubs}
