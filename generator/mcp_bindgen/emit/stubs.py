"""What the templates of `server.py` and `client.py` show: calls to the other side, and handlers for what it sends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcp_bindgen.protocol import Protocol, naming
from mcp_bindgen.protocol.model import Const, Field, Method, Object, Ref, Sender, Type, Union

from .annotations import annotation, optional
from .environment import docstring
from .pages import Walk, walk

POSITIONAL = 2
"""How many arguments of a call may be given by position; the others are keywords, so that they may grow."""

_META = "_meta"


@dataclass(frozen=True)
class Argument:
    """One argument of a call.

    Attributes:
        name: Its name in the signature.
        field: The field of the params that it fills.
        annotation: Its type.
        default: What it is when it is left out, in Python; `None` when it must be given.
        value: What is passed on to the params.
    """

    name: str
    field: str
    annotation: str
    default: str | None
    value: str

    def __str__(self) -> str:
        return f"{self.name}: {self.annotation}" + (f" = {self.default}" if self.default else "")


@dataclass(frozen=True)
class Call:
    """A typed call of one method: its signature and what it sends."""

    method: Method
    name: str
    constant: str
    arguments: tuple[Argument, ...]
    params: str
    returns: str
    doc: str
    walk: Walk | None = None

    @property
    def signature(self) -> str:
        """The parameter list after `self`."""
        positional = [argument for argument in self.arguments[:POSITIONAL] if argument.field != "meta"]
        parts = [str(argument) for argument in positional]
        keywords = [str(argument) for argument in self.arguments[len(positional) :]]
        return "".join(f", {part}" for part in parts + (["*", *keywords] if keywords else []))


@dataclass(frozen=True)
class Handler:
    """A stub to override for what the other side sends."""

    method: Method
    name: str
    constant: str
    params: str | None
    returns: str
    doc: str


@dataclass(frozen=True)
class Question:
    """Something that a server's handler may ask the client, and the classes of its params, which tell it apart."""

    constant: str
    params: str
    classes: tuple[str, ...]
    returns: str


def constant(method: Method) -> str:
    """The name of a method's descriptor in `methods.py`."""
    return naming.descriptor(method.stub)


def params_annotation(method: Method) -> str | None:
    """The type of a method's params, or `None` when it has none."""
    return None if method.params is None else annotation(method.params)


def answers(method: Method) -> str:
    """Everything that may answer a request."""
    types = [type for type in (method.result, *method.alternatives) if type is not None]
    return " | ".join(annotation(type) for type in types) or "None"


def calls(protocol: Protocol, sender: Sender) -> Iterator[Call]:
    """The calls that `sender` may make, requests first."""
    for method in _ordered(protocol):
        if sender in method.senders:
            yield _call(protocol, method, sender)


def handlers(protocol: Protocol, receiver: Sender) -> Iterator[Handler]:
    """The stubs for what may be sent to `receiver`, requests first.

    A server's requests carry their plain names, because answering them is what a server is for; everything else that
    arrives is `on_...`, so that it cannot be mistaken for a call.
    """
    for method in _ordered(protocol):
        if receiver not in method.senders or len(method.senders) == 2:
            plain = receiver == "server" and method.kind == "request"
            yield Handler(
                method=method,
                name=method.stub if plain else naming.handler(method.stub),
                constant=constant(method),
                params=params_annotation(method),
                returns=answers(method),
                doc=docstring(_handler_doc(method, receiver), indent=8),
            )


def questions(protocol: Protocol) -> Iterator[Question]:
    """What only a server asks. Two requests with the same params cannot be told apart by them, so they are left out."""
    asked = [method for method in _ordered(protocol) if method.kind == "request" and method.senders == ("server",)]
    classes = {method.name: tuple(_classes(protocol, method.params)) for method in asked}
    for method in asked:
        others = {name for other in asked if other is not method for name in classes[other.name]}
        params = params_annotation(method)
        if params is not None and method.result is not None and not others & set(classes[method.name]):
            yield Question(constant(method), params, classes[method.name], annotation(method.result))


def _classes(protocol: Protocol, type: Type | None) -> Iterator[str]:
    """The classes that params may be of."""
    match type:
        case Ref(name) if isinstance(protocol.definitions[name].type, Object):
            yield annotation(type)
        case Ref(name):
            yield from _classes(protocol, protocol.definitions[name].type)
        case Union(members):
            for member in members:
                yield from _classes(protocol, member)
        case _:
            return


def _ordered(protocol: Protocol) -> list[Method]:
    return sorted(protocol.methods, key=lambda method: (method.kind != "request", method.name))


def _handler_doc(method: Method, receiver: Sender) -> str:
    other = "client" if receiver == "server" else "server"
    owner = receiver if method.kind == "request" else other
    capability = method.capability("client" if receiver == "server" else "server")
    verb = "Answers" if method.kind == "request" else "Takes"
    lines = [f"{verb} `{method.name}`. {method.doc}".strip()]
    if capability is not None and capability.startswith(f"{owner}.") and method.kind == "request":
        lines.append(f"Overriding it offers the capability `{capability.removeprefix(f'{owner}.')}`.")
    if method.carrier == "embedded":
        lines.append("It arrives inside of a result, not as a message of its own.")
    return "\n\n".join([*lines, *_deprecation(method)])


def _deprecation(method: Method) -> list[str]:
    return [f"Deprecated {method.deprecated}."] if method.deprecated else []


def _call(protocol: Protocol, method: Method, sender: Sender) -> Call:
    arguments, params = _arguments(protocol, method)
    request = method.kind == "request"
    result = annotation(method.result) if method.result is not None else "None"
    return Call(
        method=method,
        name=method.stub if request else naming.notifier(method.stub),
        constant=constant(method),
        arguments=arguments,
        params=params,
        returns=result,
        doc=docstring(_call_doc(protocol, method, sender, arguments), indent=8),
        walk=walk(protocol, method) if _needs_only_cursor(arguments) else None,
    )


def _call_doc(protocol: Protocol, method: Method, sender: Sender, arguments: tuple[Argument, ...]) -> str:
    lines = [f"Sends `{method.name}`. {method.doc}".strip()]
    capability = method.capability(sender)
    if capability is not None:
        owner, _, path = capability.partition(".")
        lines.append(f"Needs the capability `{path}` of the {owner}.")
    type = _params(protocol, method)
    if isinstance(type, Object):
        docs = {field.name: field.doc for field in type.fields}
        about = [f"{argument.name}: {docs[argument.field]}" for argument in arguments if docs.get(argument.field)]
        if about:
            lines.append("\n".join(["Args:", *(f"    {line}" for line in about)]))
    return "\n\n".join([*lines, *_deprecation(method)])


def _params(protocol: Protocol, method: Method) -> Type | None:
    return None if method.params is None else protocol.resolve(method.params)


def _arguments(protocol: Protocol, method: Method) -> tuple[tuple[Argument, ...], str]:
    """The arguments of a call, and the expression that makes the params of them."""
    if method.params is None:
        return (), "None"
    type = _params(protocol, method)
    if not isinstance(type, Object) or not isinstance(method.params, Ref) or not _can_flatten(type, protocol):
        return (Argument("params", "params", annotation(method.params), None, "params"),), "params"
    found = sorted(
        (_argument(field) for field in type.fields if not _is_fixed(field)),
        key=lambda argument: (argument.field == "meta", argument.default is not None),
    )
    passed = ", ".join(f"{argument.field}={argument.value}" for argument in found)
    return tuple(found), f"{annotation(method.params)}({passed})"


def _needs_only_cursor(arguments: tuple[Argument, ...]) -> bool:
    """Whether a call gives a page for its first argument alone."""
    return [argument.field for argument in arguments[:1]] == ["cursor"] and all(one.default for one in arguments)


def _can_flatten(type: Object, protocol: Protocol) -> bool:
    """A call cannot tell an omitted argument from `None`, so where `null` is data the params are passed whole."""
    return all(field.required or not protocol.accepts_null(field.type) for field in type.fields)


def _is_fixed(field: Field) -> bool:
    return isinstance(field.type, Const) and field.default is not None


def _argument(field: Field) -> Argument:
    name = naming.argument(field.name)
    text = annotation(field.type)
    if field.wire == _META and field.required and isinstance(field.type, Ref):
        value = f"self.metadata({text}, {name})"
        return Argument(name, field.name, "Mapping[str, Json] | None", "None", value)
    if field.required:
        return Argument(name, field.name, text, None if field.default is None else repr(field.default), name)
    return Argument(name, field.name, optional(text), "None", name)
