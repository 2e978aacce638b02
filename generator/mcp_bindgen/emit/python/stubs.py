"""Calls and handlers for the templates of `server.py` and `client.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import OTHER_SIDE, Field, Json, Method, Sender, Type

from . import calls as protocol_calls
from . import naming
from .calls import Walk
from .environment import arguments_section, docstring, noticed
from .lowered import PythonProtocol
from .package_scope import PackageScope

_KIND = "resultType"
"""The member of results that says which of several they are."""

_METADATA = "Further metadata, by its keys in JSON; the call adds what the protocol requires."
_SUBSCRIBED = "Only the contexts of `Server.broadcast` send it; the context of a request raises `RuntimeError`."


@dataclass(frozen=True)
class Argument:
    """One argument of a call.

    Attributes:
        name: Its name in the signature.
        attribute: The attribute of the params that it fills.
        type: Its type.
        default: Its default; `None` without one.
        is_optional: True if a call may leave it out, and `None` stands for that.
        is_metadata: True if the call makes the metadata of it.
    """

    name: str
    attribute: str
    type: Type
    default: Json = None
    is_optional: bool = False
    is_metadata: bool = False


@dataclass(frozen=True)
class Call:
    """A typed call of one method.

    Attributes:
        is_whole: True if its one argument is the params.
        choice: The keyword that requests an alternative result; a side without that feature ignores it.
        walk: How to iterate over the results, if they are paginated.
    """

    method: Method
    name: str
    constant: str
    positional: tuple[Argument, ...]
    keywords: tuple[Argument, ...]
    is_whole: bool
    choice: Argument | None
    doc: str
    walk: Walk | None


@dataclass(frozen=True)
class Handler:
    """A stub to override for a message from the other side; if it is open, extensions add results."""

    method: Method
    name: str
    constant: str
    doc: str
    is_open: bool


@dataclass(frozen=True)
class Question:
    """A request from a handler of a server to the client, identified by the classes of its params."""

    method: Method
    constant: str
    classes: tuple[str, ...]


def constant(scope: PackageScope, method: Method) -> str:
    """Return the name of a method's descriptor in `methods.py`."""
    return naming.descriptor(scope.protocol.stub(method))


def _is_open(protocol: Protocol, method: Method) -> bool:
    """Return whether extensions may add results to a request: the core has several, which name their type."""
    return len(method.answers) > 1 and all(protocol.field_of(type, _KIND) for type in method.answers)


def calls(scope: PackageScope, sender: Sender) -> Iterator[Call]:
    """Return the calls that `sender` may make, requests first."""
    for method in scope.stubs():
        if protocol_calls.sends(method, sender):
            yield _call(scope, method, sender)


def handlers(scope: PackageScope, receiver: Sender) -> Iterator[Handler]:
    """Yield the stubs for messages to `receiver`, requests first."""
    for method in scope.stubs():
        if protocol_calls.receives(method, receiver):
            yield Handler(
                method=method,
                name=protocol_calls.handler_name(scope.protocol, method, receiver),
                constant=constant(scope, method),
                doc=docstring(_handler_doc(method, receiver), indent=8),
                is_open=_is_open(scope.protocol, method),
            )


def questions(scope: PackageScope) -> Iterator[Question]:
    """Yield the requests that only a server sends."""
    for method, classes in protocol_calls.questions(scope.protocol):
        yield Question(method, constant(scope, method), tuple(map(scope.name, classes)))


def handler_summary(method: Method) -> str:
    """Return the task of a handler, in the text of the revision if there is one."""
    verb = "Answer" if method.kind == "request" else "Handle"
    return method.handling or f"{verb} `{method.name}`. {method.doc}".strip()


def _handler_doc(method: Method, receiver: Sender) -> str:
    capability = method.capability(OTHER_SIDE[receiver]) or ""
    place = " inside of a result, which is no message of its own" if method.carrier == "embedded" else ""
    facts = [f"called for `{method.name}`{place}"]
    if capability.startswith(f"{receiver}.") and method.kind == "request":
        modes = dict.fromkeys(need.capability for need in method.needs if need.values and not need.tolerated)
        with_modes = f" with {' and '.join(f'`{_path(one)}`' for one in sorted(modes))}" if modes else ""
        facts.append(f"overriding it declares the capability `{_path(capability)}`{with_modes}")
    if method.origin:
        facts.append(_declared(method))
        if method.setting:
            facts.append(f"overriding it declares the setting `{naming.field(method.setting)}`")
    about = "; ".join(facts)
    return f"{handler_summary(method)}\n\n{about[0].upper()}{about[1:]}."


def _path(capability: str) -> str:
    """Return the attributes that lead to a capability of a side: `client.tasks.list` -> `tasks.list_`."""
    return ".".join(map(naming.field, capability.split(".")[1:]))


def _declared(method: Method) -> str:
    """Return a statement about the side that must have declared the extension of a method."""
    sides = "both sides" if method.declared_by == "both" else f"the {method.declared_by}"
    return f"{sides} must have declared the extension `{method.origin}`"


def _continued(sentence: str) -> str:
    """Return `sentence` without its capital letter; an abbreviation at its beginning keeps its capitals."""
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def _call(scope: PackageScope, method: Method, sender: Sender) -> Call:
    fields = protocol_calls.call_arguments(scope.protocol, method)
    is_whole = fields is None and method.params is not None
    arguments = tuple(_arguments(scope.protocol, method, fields or ()))
    if is_whole:
        assert method.params is not None
        arguments = (Argument("params", "params", method.params),)
    opt_in = scope.protocol.attribute(method.params, method.opt_in) if method.opt_in else None
    first = 1 if is_whole else len(protocol_calls.positional(scope.protocol, method, fields or ()))
    return Call(
        method=method,
        name=protocol_calls.call_name(scope.protocol, method),
        constant=constant(scope, method),
        positional=arguments[:first],
        keywords=arguments[first:],
        is_whole=is_whole,
        choice=next((one for one in arguments[first:] if one.attribute == opt_in and one.is_optional), None),
        doc=docstring(_call_doc(scope, method, sender, arguments), indent=8),
        walk=protocol_calls.walk(scope.protocol, method),
    )


def _call_doc(scope: PackageScope, method: Method, sender: Sender, arguments: tuple[Argument, ...]) -> str:
    lines = [f"Send `{method.name}`: {_continued(method.doc)}" if method.doc else f"Send `{method.name}`."]
    capability = method.capability(sender)
    if capability is not None:
        lines.append(f"Needs the capability `{_path(capability)}` of the {capability.partition('.')[0]}.")
    if method.origin:
        sentence = _declared(method) + (f", with `{naming.field(method.setting)}`" if method.setting else "")
        lines.append(f"{sentence[0].upper()}{sentence[1:]}.")
    if method.filter:
        lines.append(_SUBSCRIBED)
    fields = scope.protocol.fields_of(method.params)
    docs = {scope.protocol.attribute(method.params, one.wire): noticed(one.doc, one.deprecated) for one in fields}
    described = {it.name: _METADATA if it.is_metadata else docs.get(it.attribute, "") for it in arguments}
    lines.append(arguments_section(described))
    return "\n\n".join(filter(None, lines))


def _arguments(protocol: PythonProtocol, method: Method, fields: tuple[Field, ...]) -> Iterator[Argument]:
    for field in fields:
        attribute = protocol.attribute(method.params, field.wire)
        is_metadata = protocol_calls.is_metadata(field)
        is_optional = is_metadata or not field.required
        default = None if is_optional else field.default
        yield Argument(naming.argument(attribute), attribute, field.type, default, is_optional, is_metadata)
