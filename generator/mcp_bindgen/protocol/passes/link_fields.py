"""Say which fields name what a request is about, and which ask for a notification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mcp_bindgen.spec.store import era

from ..model import Field, Method, Object, Ref, Type
from .draft import Draft


def link_fields(draft: Draft) -> Draft:
    """Fill in `named_by` and `filter` of the methods, where `semantics.toml` names a field that there is.

    Names matter only where requests are stateless, because only those repeat them in headers.
    """
    names: Mapping[str, str] = draft.semantics["names"] if era(draft.source.definitions) == "stateless" else {}
    methods = {name: _linked(method, draft, names.get(name)) for name, method in draft.methods.items()}
    return replace(draft, methods=methods)


def _linked(method: Method, draft: Draft, name: str | None) -> Method:
    owner, _, wanted = draft.semantics["filters"].get(method.name, "").partition(".")
    named_by = _field(draft, method.params, name)
    asked_by = _field(draft, Ref(owner) if owner in draft.definitions else None, wanted)
    return replace(method, named_by=named_by.name if named_by else None, filter=asked_by.name if asked_by else None)


def _field(draft: Draft, type: Type | None, wire: str | None) -> Field | None:
    while isinstance(type, Ref):
        type = draft.definitions[type.name].type
    return type.field(wire) if isinstance(type, Object) and wire else None
