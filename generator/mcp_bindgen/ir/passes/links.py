"""Link requests to results, methods to fields, and methods to the capabilities that they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mcp_bindgen.spec.toml import quoted

from .. import naming
from ..model import (
    OTHER_SIDE,
    Capability,
    Const,
    Definition,
    Field,
    Filter,
    HeaderParams,
    Method,
    Need,
    Object,
    Places,
    Ref,
    Scalar,
    Sender,
    Truncation,
    Type,
    Union,
    flattened,
)
from .build_state import BuildState
from .collect_methods import method_of

_EMPTY = "EmptyResult"


def link_results(state: BuildState) -> BuildState:
    """Fill in the results: from `XResultResponse`, else by the name rule `XRequest` -> `XResult`, else from semantics.

    Raises:
        BadInput: In strict mode: a request has no known result; the error states the fix.
    """
    methods = {name: _with_results(method, state) for name, method in state.methods.items()}
    definitions = state.definitions
    if any(Ref(_EMPTY) == method.result for method in methods.values()) and _EMPTY not in definitions:
        definitions = dict(sorted({**definitions, _EMPTY: Definition(_EMPTY, Object(()), inline=True)}.items()))
    return replace(state, methods=methods, definitions=definitions)


def _with_results(method: Method, state: BuildState) -> Method:
    if method.kind != "request":
        return method
    stem = method.definition.removesuffix("Request")
    facts = state.facts_about(method)
    known = state.definitions if method.origin else state.of_core()
    stated = facts["results"].get(method.name)
    named = stated or f"{stem}Result"
    answers = _response(known.get(f"{stem}ResultResponse"))
    if not answers and named in known:
        answers = [Ref(named)]
    if not answers:
        answers = [Ref(_assumed(method, stem, named, state))]
    primary = Ref(named) if Ref(named) in answers else answers[-1]
    others = [answer for answer in answers if answer != primary]
    others += [Ref(name) for name in facts["alternatives"].get(method.name, ()) if name in known]
    return replace(method, result=primary, alternatives=tuple(others))


def _response(definition: Definition | None) -> list[Type]:
    field = definition.type.field("result") if definition and isinstance(definition.type, Object) else None
    return flattened([field.type]) if field is not None else []


def _assumed(method: Method, stem: str, named: str, state: BuildState) -> str:
    """Return the definition that answers a request of which nothing says so.

    It may be named after the request without a second `Result`, after another message of the same method or after the
    params; else it is empty.
    """
    stems = [name for name, other in state.definitions.items() if method_of(other) == method.name]
    stems += [method.params.name.removesuffix("Params")] if isinstance(method.params, Ref) else []
    results = [stem, *(f"{name.removesuffix('Request')}Result" for name in stems)]
    known = [name for name in results if name in state.definitions and name.endswith("Result")]
    empty = next((name for name in (_EMPTY, "Result") if name in state.definitions), _EMPTY)
    found = next(iter(known), empty)
    fact = f"write results.{quoted(method.name)} = {quoted(found)} in a file for --semantics"
    words = {"found": found, "empty": "" if known else ", an empty result"}
    words["fact"] = f", or {fact}" if found in state.definitions else ""
    state.context.report("result-assumed", f"/$defs/{method.definition}", method=method.name, named=named, **words)
    return found


def link_fields(state: BuildState) -> BuildState:
    """Fill in the members of params and results that `semantics.toml` names and the schema has, and `lifecycle`.

    `named_by` and `header_params` matter only where requests are stateless, because only those repeat something in
    headers.
    """
    stateless = state.source.era == "stateless"
    return replace(
        state, methods={name: _with_fields(method, state, stateless) for name, method in state.methods.items()}
    )


def _with_fields(method: Method, state: BuildState, stateless: bool) -> Method:
    facts = state.facts_about(method)
    asking = (wire for name, wire in facts["opt_in"].items() if Ref(name) in method.alternatives)
    named_by = state.field_of(method.params, facts["names"].get(method.name)) if stateless else None
    repeated: Mapping[str, str] | None = facts["header_params"].get(method.name) if stateless else None
    return replace(
        method,
        arguments=tuple(
            wire for wire in facts["arguments"].get(method.name, ()) if state.field_of(method.params, wire)
        ),
        lifecycle=facts["lifecycle"].get(method.name, ""),
        named_by=named_by.wire if named_by else None,
        header_params=_header_params(method, state, repeated),
        filter=_filter(method, state, facts["filters"].get(method.name)),
        opt_in=next((wire for wire in asking if state.field_of(method.params, wire) is not None), None),
        truncation=_truncation(method, state, facts["truncated"].get(method.name)),
    )


def _filter(method: Method, state: BuildState, stated: Mapping[str, Any] | None) -> Filter | None:
    """Return the member `Definition.member` of a subscription's filter, in the core or added to it by an extension."""
    if stated is None:
        return None
    owner, _, member = stated["member"].partition(".")
    own = state.facts_about(method).get("extends", {}).get(owner)
    holder = next((name for name in (own, owner) if name and state.field_of(Ref(name), member)), None)
    if holder is None:
        return None
    compared = _compared(state, method.params, stated.get("compares"))
    return Filter(holder, member, compared.wire if compared else None, stated.get("by", "equal"))


def _truncation(method: Method, state: BuildState, stated: Mapping[str, Any] | None) -> Truncation | None:
    if stated is None:
        return None
    found = Truncation(stated["holder"], stated["values"], stated["total"], stated["more"], stated["most"])
    return found if _exist(state, found.places(state, method.result)) else None


def _header_params(method: Method, state: BuildState, stated: Mapping[str, str] | None) -> HeaderParams | None:
    if stated is None or stated["listed_by"] not in state.methods:
        return None
    found = HeaderParams(**stated)
    return found if _exist(state, found.places(state, state.methods[found.listed_by].result, method.params)) else None


def _exist(state: BuildState, places: Places) -> bool:
    """Return whether each of some types has its member."""
    return all(state.field_of(*place) is not None for place in places.values())


def _compared(state: BuildState, type: Type | None, wire: str | None) -> Field | None:
    """Return the field `wire` of an object, or of a union each member of which has it."""
    union = state.resolve(type) if type is not None else None
    if not isinstance(union, Union):
        return state.field_of(type, wire)
    fields = [_compared(state, member, wire) for member in union.members]
    return None if None in fields else fields[0]


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
    methods = {name: _with_capabilities(method, state, declared) for name, method in state.methods.items()}
    return replace(state, methods=methods)


def _with_capabilities(method: Method, state: BuildState, declared: set[str]) -> Method:
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
    flags = {one.wire for name in receivers for one in _fields_of(Ref(name), state) if one.type == Scalar("boolean")}
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
    for field in _fields_of(method.params, state):
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


def _fields_of(type: Type | None, state: BuildState) -> Iterator[Field]:
    """Yield the fields of an object, or of each member of a union of objects."""
    yield from state.fields_of(type)
    union = state.resolve(type) if type is not None else None
    for member in union.members if isinstance(union, Union) else ():
        yield from _fields_of(member, state)
