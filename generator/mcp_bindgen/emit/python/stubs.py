"""Calls and handlers for the templates of `server.py` and `client.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import OTHER_SIDE, Field, Method, Sender

from . import calls as protocol_calls
from . import naming
from .annotations import JSON, optional
from .calls import Walk
from .environment import arguments_section, docstring, noticed
from .imports import abi, use
from .package_scope import PackageScope

_KIND = "resultType"
"""The member of results that says which of several they are."""


@dataclass(frozen=True)
class Argument:
    """One argument of a call.

    Attributes:
        name: Its name in the signature.
        field: The field of the params that it fills.
        annotation: Its type.
        default: Python expression of its default; `None` if the argument is required.
        value: Python expression for the field of the params.
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
    """A typed call of one method: its signature, its params, and the type of an item if the result is a list."""

    method: Method
    name: str
    constant: str
    positional: tuple[Argument, ...]
    keywords: tuple[Argument, ...]
    params: str
    returns: str
    doc: str
    walk: Walk | None
    item: str

    @property
    def signature(self) -> str:
        """The parameter list after `self`."""
        parts = [str(argument) for argument in self.positional]
        keywords = [str(argument) for argument in self.keywords]
        return "".join(f", {scope}" for scope in parts + (["*", *keywords] if keywords else []))


@dataclass(frozen=True)
class Handler:
    """A stub to override for a message from the other side."""

    method: Method
    name: str
    constant: str
    params: str | None
    returns: str
    doc: str


@dataclass(frozen=True)
class Question:
    """A request from a handler of a server to the client, identified by the classes of its params."""

    constant: str
    params: str
    classes: tuple[str, ...]
    returns: str


def constant(scope: PackageScope, method: Method) -> str:
    """Return the name of a method's descriptor in `methods.py`."""
    return naming.descriptor(scope.protocol.stub(method))


def params_annotation(scope: PackageScope, method: Method) -> str | None:
    """Return the type of a method's params, or `None` when it has none."""
    return None if method.params is None else scope.annotation(method.params)


def answers(scope: PackageScope, method: Method) -> str:
    """Return everything that a handler of a method may answer."""
    names = list(map(scope.annotation, method.answers)) or ["None"]
    return " | ".join([*names, abi("ExtensionResult")] if _is_open(scope.protocol, method) else names)


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
                params=params_annotation(scope, method),
                returns=answers(scope, method),
                doc=docstring(_handler_doc(method, receiver), indent=8),
            )


def questions(scope: PackageScope) -> Iterator[Question]:
    """Yield the requests that only a server sends."""
    for method, classes in protocol_calls.questions(scope.protocol):
        assert method.params is not None
        assert method.result is not None
        names = tuple(map(scope.name, classes))
        yield Question(constant(scope, method), scope.annotation(method.params), names, scope.annotation(method.result))


def handler_summary(method: Method) -> str:
    """Return the task of a handler, in the text of the revision if there is one."""
    verb = "Answer" if method.kind == "request" else "Handle"
    return method.handling or f"{verb} `{method.name}`. {method.doc}".strip()


def _handler_doc(method: Method, receiver: Sender) -> str:
    capability = method.capability(OTHER_SIDE[receiver]) or ""
    place = " inside of a result, which is no message of its own" if method.carrier == "embedded" else ""
    facts = [f"called for `{method.name}`{place}"]
    if capability.startswith(f"{receiver}.") and method.kind == "request":
        facts.append(f"overriding it declares the capability `{capability.removeprefix(f'{receiver}.')}`")
    if method.origin:
        facts.append(_declared(method))
        if method.setting:
            facts.append(f"overriding it declares the setting `{method.setting}`")
    about = "; ".join(facts)
    return noticed(f"{handler_summary(method)}\n\n{about[0].upper()}{about[1:]}.", method.deprecated)


def _declared(method: Method) -> str:
    """Return a statement about the side that must have declared the extension of a method."""
    sides = "both sides" if method.declared_by == "both" else f"the {method.declared_by}"
    return f"{sides} must have declared the extension `{method.origin}`"


def _continued(sentence: str) -> str:
    """Return `sentence` without its capital letter; an abbreviation at its beginning keeps its capitals."""
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def _call(scope: PackageScope, method: Method, sender: Sender) -> Call:
    positional, keywords, params = _arguments(scope, method)
    result = scope.annotation(method.result) if method.result is not None else "None"
    walk = protocol_calls.walk(scope.protocol, method)
    return Call(
        method=method,
        name=protocol_calls.call_name(scope.protocol, method),
        constant=constant(scope, method),
        positional=positional,
        keywords=keywords,
        params=params,
        returns=result,
        doc=docstring(_call_doc(scope, method, sender, positional + keywords), indent=8),
        walk=walk,
        item=scope.annotation(walk.item) if walk is not None else "",
    )


def _call_doc(scope: PackageScope, method: Method, sender: Sender, arguments: tuple[Argument, ...]) -> str:
    lines = [f"Send `{method.name}`: {_continued(method.doc)}" if method.doc else f"Send `{method.name}`."]
    capability = method.capability(sender)
    if capability is not None:
        owner, _, path = capability.partition(".")
        lines.append(f"Needs the capability `{path}` of the {owner}.")
    if method.origin:
        sentence = _declared(method) + (f", with `{method.setting}`" if method.setting else "")
        lines.append(f"{sentence[0].upper()}{sentence[1:]}.")
    fields = scope.protocol.fields_of(method.params)
    docs = {scope.protocol.attribute(method.params, one.wire): noticed(one.doc, one.deprecated) for one in fields}
    lines.append(arguments_section({argument.name: docs.get(argument.field, "") for argument in arguments}))
    return noticed("\n\n".join(filter(None, lines)), method.deprecated)


def _arguments(scope: PackageScope, method: Method) -> tuple[tuple[Argument, ...], tuple[Argument, ...], str]:
    """Return the arguments of a call by position and by keyword, and the expression that makes the params of them."""
    if method.params is None:
        return (), (), "None"
    text = scope.annotation(method.params)
    fields = protocol_calls.call_arguments(scope.protocol, method)
    if fields is None:
        return (Argument("params", "params", text, None, "params"),), (), "params"
    found = tuple(_argument(scope, scope.protocol.attribute(method.params, field.wire), field) for field in fields)
    first = len(protocol_calls.positional(scope.protocol, method, fields))
    passed = ", ".join(f"{argument.field}={argument.value}" for argument in found)
    return found[:first], found[first:], f"{text}({passed})"


def _argument(scope: PackageScope, attribute: str, field: Field) -> Argument:
    name = naming.argument(attribute)
    text = scope.annotation(field.type)
    if protocol_calls.is_metadata(field):
        value = f"self.metadata({text}, {name})"
        return Argument(name, attribute, f"{use('collections.abc', 'Mapping')}[str, {JSON}] | None", "None", value)
    if field.required:
        return Argument(name, attribute, text, None if field.default is None else repr(field.default), name)
    return Argument(name, attribute, optional(text), "None", name)
