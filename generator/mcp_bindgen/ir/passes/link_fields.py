"""Link methods to fields: positional arguments, targets, fields in headers, filters, opt-in fields, limited lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..model import Array, Field, Filter, HeaderParams, Method, Ref, Truncation, Type, Union
from .build_state import BuildState


def link_fields(state: BuildState) -> BuildState:
    """Fill in the members of params and results that `semantics.toml` names and the schema has, and `lifecycle`.

    `named_by` and `header_params` matter only where requests are stateless, because only those repeat something in
    headers.
    """
    stateless = state.source.era == "stateless"
    return replace(state, methods={name: _linked(method, state, stateless) for name, method in state.methods.items()})


def _linked(method: Method, state: BuildState, stateless: bool) -> Method:
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
    holder = state.field_of(method.result, stated["holder"]) if stated is not None else None
    if stated is None or holder is None:
        return None
    members = {name: stated[name] for name in ("values", "total", "more")}
    if None in [state.field_of(holder.type, wire) for wire in members.values()]:
        return None
    return Truncation(holder=holder.wire, **members, max_items=stated["most"])


def _header_params(method: Method, state: BuildState, stated: Mapping[str, str] | None) -> HeaderParams | None:
    if stated is None or stated["listed_by"] not in state.methods:
        return None
    items = state.field_of(state.methods[stated["listed_by"]].result, stated["items"])
    item = items.type.items if items is not None and isinstance(items.type, Array) else None
    found = (
        state.field_of(item, stated["name"]),
        state.field_of(item, stated["schema"]),
        state.field_of(method.params, stated["arguments"]),
    )
    return None if None in found else HeaderParams(**stated)


def _compared(state: BuildState, type: Type | None, wire: str | None) -> Field | None:
    """Return the field `wire` of an object, or of a union each member of which has it."""
    union = state.resolve(type) if type is not None else None
    if not isinstance(union, Union):
        return state.field_of(type, wire)
    fields = [_compared(state, member, wire) for member in union.members]
    return None if None in fields else fields[0]
