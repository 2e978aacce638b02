"""Give every name of a revision to one thing only in the class or module that it goes into."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mcp_bindgen.spec import BadInput, Reading

from . import naming
from .calls import call_name, handler_name, receives, sends, walk
from .model import ErrorCode, Method, Protocol, Sender

_Named = tuple[str, str, Method | ErrorCode]


def separate(protocol: Protocol, reading: Reading) -> Protocol:
    """Return `protocol` without two methods or errors of the same name in generated code.

    Raises:
        BadInput: In a strict reading: one of them would hide the other.
    """
    while (clash := next(_clashes(protocol), None)) is not None:
        protocol = _without(clash, protocol, reading)
    return replace(protocol, decisions=reading.decisions)


def _clashes(protocol: Protocol) -> Iterator[tuple[_Named, _Named]]:
    """Return two of the same name in one scope."""
    seen: dict[tuple[str, str], _Named] = {}
    for scope, name, owner in _names(protocol):
        if (scope, name) in seen:
            yield seen[scope, name], (scope, name, owner)
        seen[scope, name] = scope, name, owner


def _names(protocol: Protocol) -> Iterator[_Named]:
    """Return scope, name and owner of everything that is named after a method or an error."""
    for method in protocol.methods:
        yield "methods.py", naming.descriptor(method.stub), method
    for error in protocol.errors:
        yield "errors.py", naming.constant(error.name), error
    for method in protocol.methods:
        yield from (("Client", name, method) for name in _calls(protocol, method, "client"))
        yield from (("Context", name, method) for name in _calls(protocol, method, "server"))
        if receives(method, "client"):
            yield "Client", handler_name(method, "client"), method
        if receives(method, "server"):
            yield "Server", handler_name(method, "server"), method


def _calls(protocol: Protocol, method: Method, sender: Sender) -> Iterator[str]:
    if sends(method, sender):
        yield call_name(method)
        if (found := walk(protocol, method)) is not None:
            yield found.name


def _without(clash: tuple[_Named, _Named], protocol: Protocol, reading: Reading) -> Protocol:
    """Return `protocol` with another name for the second one of a clash."""
    (_, _, first), (scope, name, second) = clash
    error = BadInput(
        f"{_owner(first)} and {_owner(second)} would both be {name!r} in {scope}",
        pointer=f"/$defs/{_owner(second)}",
        fix="rename one of them with a patch",
    )
    if isinstance(second, ErrorCode):
        known = {naming.constant(one.name) for one in protocol.errors}
        other = naming.numbered(second.name, lambda name: naming.constant(name) in known)
        errors = tuple(replace(one, name=other) if one is second else one for one in protocol.errors)
        protocol = replace(protocol, errors=errors)
    else:
        stubs = {one.stub for one in protocol.methods}
        other = naming.numbered(f"{second.stub.removesuffix('_')}_", stubs.__contains__)
        methods = tuple(replace(one, stub=other) if one is second else one for one in protocol.methods)
        protocol = replace(protocol, methods=methods)
    reading.settle("stub-taken", error, f"the second is named after {other!r}")
    return protocol


def _owner(named: Method | ErrorCode) -> str:
    return named.definition or (named.name if isinstance(named, ErrorCode) else "")
