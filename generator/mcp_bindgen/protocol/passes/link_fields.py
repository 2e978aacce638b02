"""Say which fields name what a request is about, which ones headers repeat, and which ask for a notification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mcp_bindgen.spec.store import era

from ..model import Array, Field, HeaderParams, Method, Object, Ref, Truncation, Type
from .draft import Draft


def link_fields(draft: Draft) -> Draft:
    """Fill in the fields of params and results that methods name, where `semantics.toml` names those that exist.

    `named_by` and `header_params` matter only where requests are stateless, because only those repeat something in
    headers.
    """
    stateless = era(draft.source.definitions) == "stateless"
    names: Mapping[str, str] = draft.semantics["names"] if stateless else {}
    params: Mapping[str, Mapping[str, str]] = draft.semantics["header_params"] if stateless else {}
    methods = {
        name: replace(
            _linked(method, draft, names.get(name)), header_params=_header_params(method, draft, params.get(name))
        )
        for name, method in draft.methods.items()
    }
    return replace(draft, methods=methods)


def _linked(method: Method, draft: Draft, name: str | None) -> Method:
    stated: Mapping[str, str] = draft.semantics["filters"].get(method.name, {})
    owner, _, wanted = stated.get("member", "").partition(".")
    named_by = _field(draft, method.params, name)
    compared = _field(draft, method.params, stated.get("compares"))
    filtered_by = _field(draft, Ref(owner) if owner in draft.definitions else None, wanted)
    asking = [
        field.name
        for name, wire in draft.semantics["asked_by"].items()
        if Ref(name) in method.alternatives and (field := _field(draft, method.params, wire)) is not None
    ]
    return replace(
        method,
        named_by=named_by.name if named_by else None,
        filter=filtered_by.name if filtered_by else None,
        compares=compared.name if filtered_by and compared else None,
        compares_by="part" if filtered_by and stated.get("by") == "part" else "equal",
        asked_by=next(iter(asking), None),
        truncation=_truncation(method, draft, draft.semantics["truncated"].get(method.name)),
    )


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


def _field(draft: Draft, type: Type | None, wire: str | None) -> Field | None:
    while isinstance(type, Ref):
        type = draft.definitions[type.name].type
    return type.field(wire) if isinstance(type, Object) and wire else None
