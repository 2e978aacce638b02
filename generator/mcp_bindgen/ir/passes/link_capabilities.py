"""List the capabilities of each side, and say which one must be declared before a message may be sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .. import naming
from ..model import OTHER_SIDE, Capability, Const, Field, Method, Need, Object, Ref, Scalar, Sender, Type, Union
from .build_state import BuildState

_OWNERS: tuple[tuple[Sender, str], ...] = (("client", "ClientCapabilities"), ("server", "ServerCapabilities"))


def collect_capabilities(state: BuildState) -> BuildState:
    """Fill in the capabilities: each member of `ClientCapabilities` and `ServerCapabilities`, and theirs."""
    found = tuple(
        Capability(owner, path, flag)
        for owner, name in _OWNERS
        if name in state.definitions
        for path, flag in _paths(Ref(name), state, "", frozenset())
    )
    return replace(state, capabilities=found)


def _paths(type: Type, state: BuildState, prefix: str, above: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """Yield the members of `type` and their members; a type that contains one `above` it is not followed further."""
    while isinstance(type, Ref):
        if type.name in above:
            return
        above |= {type.name}
        type = state.definitions[type.name].type
    if isinstance(type, Object):
        for field in type.fields:
            yield prefix + field.wire, field.type == Scalar("boolean")
            yield from _paths(field.type, state, f"{prefix}{field.wire}.", above)


def link_capabilities(state: BuildState) -> BuildState:
    """Fill in the capabilities that methods and their params need.

    A request needs a capability of its receiver, a notification one of its sender. Its name is the
    first segment of the method's name, and below it the last segment where there is such a member (`tools/list` ->
    `server.tools`, `notifications/tools/list_changed` -> `server.tools.listChanged`). A member of a request's params,
    or a constant in it, needs the nested capability of its name (`sampling/createMessage` with `tools` ->
    `client.sampling.tools`). `semantics.toml` has the exceptions. A method of an extension needs only the capability
    or the setting that the facts of the extension state.
    """
    declared = {capability.name for capability in state.capabilities}
    methods = {name: _linked(method, state, declared) for name, method in state.methods.items()}
    return replace(state, methods=methods)


def _linked(method: Method, state: BuildState, declared: set[str]) -> Method:
    stated = state.facts_about(method)["capabilities"].get(method.name)
    links: list[tuple[Sender, str]] = []
    for sender in method.senders:
        namesake = None if method.origin else _namesake(method, sender, declared)
        capability = stated if stated in declared else namesake
        if capability is not None:
            links.append((sender, capability))
    found = replace(method, capabilities=tuple(links), needs=tuple(_needs(method, links, state, declared)))
    if not method.origin:
        return found
    head: Mapping[str, Any] = state.facts_about(method)["extension"]
    settings: Mapping[str, str] = head.get("settings", {})
    receivers = {settings.get(OTHER_SIDE[sender], "") for sender in method.senders} & state.definitions.keys()
    flags = {one.wire for name in receivers for one in _fields(Ref(name), state) if one.type == Scalar("boolean")}
    return replace(
        found,
        declared_by=head.get("declared_by", "both"),
        setting=stated if stated is not None and stated in flags else "",
    )


def _namesake(method: Method, sender: Sender, declared: set[str]) -> str | None:
    segments = method.name.removeprefix("notifications/").split("/")
    if len(segments) < 2:
        return None
    owner = OTHER_SIDE[sender] if method.kind == "request" else sender
    leaf = "".join(word.capitalize() for word in naming.words(segments[-1]))
    leaf = leaf[:1].lower() + leaf[1:]
    below, whole = f"{owner}.{segments[0]}.{leaf}", f"{owner}.{segments[0]}"
    return below if below in declared else whole if whole in declared else None


def _needs(method: Method, links: list[tuple[Sender, str]], state: BuildState, declared: set[str]) -> Iterator[Need]:
    if method.kind != "request":
        return
    implied = set(state.semantics["implied"].values())
    for field in _fields(method.params, state):
        stated = state.facts_about(method)["needs"].get(f"{method.name}.{field.wire}")
        if stated is not None and stated["capability"] in declared:
            tolerated = stated.get("checked_by") == "sender"
            yield Need(field.wire, stated["capability"], tuple(stated.get("values", ())), tolerated=tolerated)
        constant = state.resolve(field.type)
        values = [str(value) for value in constant.values] if isinstance(constant, Const) else []
        for _, above in links:
            for name in (field.wire, *values):
                below = f"{above}.{name}"
                if below in declared:
                    is_member = name == field.wire
                    values_with = () if is_member else (name,)
                    absent = not is_member and not field.required
                    yield Need(field.wire, below, values_with, absent=absent, implied=below in implied)


def _fields(type: Type | None, state: BuildState) -> Iterator[Field]:
    """Yield the fields of an object, or of each member of a union of objects."""
    yield from state.fields_of(type)
    union = state.resolve(type) if type is not None else None
    for member in union.members if isinstance(union, Union) else ():
        yield from _fields(member, state)
