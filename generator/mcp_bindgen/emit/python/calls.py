"""Python view of methods: the names of stubs, and the arguments of calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from mcp_bindgen.ir import model as ir

from . import naming
from .lowered import PythonProtocol

_META = "_meta"


@dataclass(frozen=True)
class Walk:
    """All items of a paginated list, one by one.

    Attributes:
        name: The stub, e.g. `iter_tools`.
        call: The call that gives a page, e.g. `list_tools`.
        item: The type of an item.
        field: The attribute of a page with its items.
    """

    name: str
    call: str
    item: ir.Type
    field: str


SENDERS: Mapping[str, ir.Sender] = {"Client": "client", "Context": "server"}
"""Class -> sender of the methods that it calls."""

RECEIVERS: Mapping[str, ir.Sender] = {"Client": "client", "Server": "server"}
"""Class -> receiver of the methods that it handles."""

Role = Literal["call", "walk", "handler"]


def members(protocol: PythonProtocol, method: ir.Method) -> Iterator[tuple[Role, str, str, ir.Sender]]:
    """Yield the members of classes for a method: role, class, name and the side that sends the method."""
    for owner, sender in SENDERS.items():
        if sends(method, sender):
            yield "call", owner, call_name(protocol, method), sender
            if (walked := walk(protocol, method)) is not None:
                yield "walk", owner, walked.name, sender
    for owner, receiver in RECEIVERS.items():
        if receives(method, receiver):
            yield "handler", owner, handler_name(protocol, method, receiver), ir.OTHER_SIDE[receiver]


def methods_in_order(protocol: ir.Protocol) -> list[ir.Method]:
    """Return the methods in the order of their stubs: requests first."""
    return sorted(protocol.methods, key=lambda method: (method.kind != "request", method.name))


def receives(method: ir.Method, side: ir.Sender) -> bool:
    """Return True if a method may be sent to `side`."""
    return side not in method.senders or len(method.senders) == 2


def sends(method: ir.Method, side: ir.Sender) -> bool:
    """Return whether `side` has a stub that sends a method; methods that the runtime sends have none."""
    return side in method.senders and not method.lifecycle


def call_name(protocol: PythonProtocol, method: ir.Method) -> str:
    """Return the name of the call that sends a method."""
    stub = protocol.stub(method)
    return stub if method.kind == "request" else naming.notifier(stub)


def handler_name(protocol: PythonProtocol, method: ir.Method, receiver: ir.Sender) -> str:
    """Return the name of the handler of a method.

    The handlers of a server's requests have plain names. All other handlers are `on_...`, to differ from calls.
    """
    stub = protocol.stub(method)
    return stub if receiver == "server" and method.kind == "request" else naming.handler(stub)


def call_arguments(protocol: PythonProtocol, method: ir.Method) -> tuple[ir.Field, ...] | None:
    """List the fields of the params that are arguments of a call, in order; `None` where the params are passed whole.

    Positional arguments come first, then required ones, and the metadata last.
    A call cannot tell an omitted argument from `None`, so where `null` is data the params are passed whole.
    So are params that name no member and may have any.
    """
    if method.params is None:
        return ()
    type = protocol.resolve(method.params)
    if not isinstance(type, ir.Object) or not isinstance(method.params, ir.Ref):
        return None
    if not type.fields and type.extra is not None:
        return None
    if any(not field.required and protocol.accepts_null(field.type) for field in type.fields):
        return None
    places = {wire: place for place, wire in enumerate(protocol.positional.get(method.name, ()))}

    def place(field: ir.Field) -> tuple[int, bool, bool]:
        return places.get(field.wire, len(places)), field.wire == _META, may_omit(field)

    return tuple(sorted(argument_fields(type.fields), key=place))


def argument_fields(fields: Iterable[ir.Field]) -> Iterator[ir.Field]:
    """List the fields of params that say something: all but constants."""
    return (field for field in fields if not (isinstance(field.type, ir.Const) and field.default is not None))


def is_metadata(field: ir.Field) -> bool:
    """Return whether a field holds metadata that the call makes and merges with the given metadata."""
    return field.wire == _META and field.required and isinstance(field.type, ir.Ref)


def may_omit(field: ir.Field) -> bool:
    """Return whether a call may leave a field out."""
    return not field.required or field.default is not None or is_metadata(field)


def positional(protocol: PythonProtocol, method: ir.Method, arguments: tuple[ir.Field, ...]) -> tuple[ir.Field, ...]:
    """Return those `arguments` of a call that may be given by position."""
    return tuple(field for field in arguments if field.wire in protocol.positional[method.name])


def walk(protocol: PythonProtocol, method: ir.Method) -> Walk | None:
    """Return how to iterate over the results of `method`, or None if it is not paginated."""
    arguments = call_arguments(protocol, method)
    if not any(field.wire == "cursor" for field in arguments or ()) or not all(map(may_omit, arguments or ())):
        return None
    fields = protocol.fields_of(method.result)
    lists = [(field.wire, field.type.items) for field in fields if field.required and isinstance(field.type, ir.Array)]
    if len(lists) != 1 or protocol.field_of(method.result, "nextCursor") is None:
        return None
    (wire, item) = lists[0]
    stub = protocol.stub(method)
    return Walk(naming.walker(stub), stub, item, protocol.attribute(method.result, wire))


def questions(protocol: ir.Protocol) -> Iterator[tuple[ir.Method, tuple[str, ...]]]:
    """Yield the requests that only a server sends, each with the classes of its params.

    Two requests with the same params cannot be told apart by them, so they are left out.
    """
    asked = [
        method for method in methods_in_order(protocol) if method.kind == "request" and method.senders == ("server",)
    ]
    params = {method.name: tuple(classes(protocol, method.params)) for method in asked}
    for method in asked:
        taken = {name for other in asked if other is not method for name in params[other.name]}
        if method.params is not None and method.result is not None and not taken & set(params[method.name]):
            yield method, params[method.name]


def takes_any(definition: ir.Definition) -> bool:
    """Return whether a constructor takes members without a name as keywords.

    Inline objects and objects without names of their own declare this, or are JSON Schemas. Elsewhere, and in
    extensions, whose schemas often open everything, a constructor keeps finding mistyped names.
    """
    type = definition.type
    if definition.origin or not isinstance(type, ir.Object) or not isinstance(type.extra, ir.AnyValue):
        return False
    is_free = definition.inline or all(field.wire == _META for field in type.fields)
    return (is_free and not type.extra.implied) or is_json_schema(definition)


def is_json_schema(definition: ir.Definition) -> bool:
    """Return whether an inline object is a JSON Schema: it names its dialect, or describes objects."""
    fields = definition.type.fields if isinstance(definition.type, ir.Object) and definition.inline else ()
    return any(
        field.wire == "$schema" or (field.wire, field.type) == ("type", ir.Const(("object",))) for field in fields
    )


def classes(protocol: ir.Protocol, type: ir.Type | None) -> Iterator[str]:
    """Return the classes that a value of `type` may be of."""
    match type:
        case ir.Ref(name) if isinstance(protocol.definitions[name].type, ir.Object):
            yield name
        case ir.Ref(name):
            yield from classes(protocol, protocol.definitions[name].type)
        case ir.Union(members):
            for member in members:
                yield from classes(protocol, member)
        case _:
            return
