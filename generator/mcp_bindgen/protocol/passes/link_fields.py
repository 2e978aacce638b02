"""Say which fields name what a request is about, which ones headers repeat, and which ask for a notification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mcp_bindgen.spec.effective import era

from ..model import Array, Field, HeaderParams, Method, Object, Ref, Truncation, Type, Union
from .draft import Draft


def link_fields(draft: Draft) -> Draft:
    """Fill in the fields of params and results that methods name, where `semantics.toml` names those that exist.

    `named_by` and `header_params` matter only where requests are stateless, because only those repeat something in
    headers.
    """
    stateless = era(draft.source.definitions) == "stateless"
    return replace(draft, methods={name: _linked(method, draft, stateless) for name, method in draft.methods.items()})


def _linked(method: Method, draft: Draft, stateless: bool) -> Method:
    facts = draft.facts_about(method)
    filter: Mapping[str, Any] = facts["filters"].get(method.name, {})
    filtered_by = filter_field(draft, method, filter.get("member", ""))
    compared = _compared(draft, method.params, filter.get("compares"))
    asking = [
        field.name
        for name, wire in facts["asked_by"].items()
        if Ref(name) in method.alternatives and (field := _field(draft, method.params, wire)) is not None
    ]
    named_by = _field(draft, method.params, facts["names"].get(method.name)) if stateless else None
    repeated: Mapping[str, str] | None = facts["header_params"].get(method.name) if stateless else None
    return replace(
        method,
        named_by=named_by.name if named_by else None,
        header_params=_header_params(method, draft, repeated),
        filter=filtered_by.name if filtered_by else None,
        compares=compared.name if compared and filtered_by else None,
        compares_by=filter.get("by", "equal"),
        asked_by=next(iter(asking), None),
        truncation=_truncation(method, draft, facts["truncated"].get(method.name)),
    )


def filter_field(draft: Draft, method: Method, member: str) -> Field | None:
    """Return the field `Definition.member` of a subscription's filter: core's, or one that an extension adds to it."""
    owner, _, wanted = member.partition(".")
    own = draft.facts_about(method).get("extends", {}).get(owner)
    return next((found for name in (own, owner) if name and (found := _field(draft, Ref(name), wanted))), None)


def _truncation(method: Method, draft: Draft, stated: Mapping[str, Any] | None) -> Truncation | None:
    holder = _field(draft, method.result, stated["holder"]) if stated is not None else None
    if stated is None or holder is None:
        return None
    found = [_field(draft, holder.type, stated[name]) for name in ("values", "total", "more")]
    names = [field.name for field in found if field is not None]
    if len(names) < len(found):
        return None
    values, total, more = names
    return Truncation(holder.name, values, total, more, stated["most"])


def _header_params(method: Method, draft: Draft, stated: Mapping[str, str] | None) -> HeaderParams | None:
    if stated is None or stated["listed_by"] not in draft.methods:
        return None
    items = _field(draft, draft.methods[stated["listed_by"]].result, stated["items"])
    item = items.type.items if items is not None and isinstance(items.type, Array) else None
    found = (
        items,
        _field(draft, item, stated["name"]),
        _field(draft, item, stated["schema"]),
        _field(draft, method.params, stated["arguments"]),
    )
    names = [field.name for field in found if field is not None]
    return HeaderParams(stated["listed_by"], *names) if len(names) == len(found) else None


def _compared(draft: Draft, type: Type | None, wire: str | None) -> Field | None:
    """Return the field `wire` of an object, or of a union each member of which has it."""
    type = _resolved(draft, type)
    if not isinstance(type, Union):
        return _field(draft, type, wire)
    fields = [_compared(draft, member, wire) for member in type.members]
    return None if None in fields else fields[0]


def _field(draft: Draft, type: Type | None, wire: str | None) -> Field | None:
    type = _resolved(draft, type)
    return type.field(wire) if isinstance(type, Object) and wire else None


def _resolved(draft: Draft, type: Type | None) -> Type | None:
    while isinstance(type, Ref):
        type = draft.definitions[type.name].type if type.name in draft.definitions else None
    return type
