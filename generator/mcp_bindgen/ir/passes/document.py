"""Add descriptions to definitions, fields and methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mcp_bindgen.spec.revisions import has_reached

from ..model import Definition, Object, Ref
from .build_state import BuildState

_BASES = ("RequestParams", "NotificationParams", "Result", "CacheableResult", "PaginatedResult")
"""The core definitions with members that messages of extensions have too."""


def document(state: BuildState) -> BuildState:
    """Take the descriptions from `docs.toml`, or keep those of the schema file; add deprecations."""
    texts = {origin: state.source.descriptions(origin) for origin in ("", *(one.id for one in state.source.extensions))}
    revision = state.source.revision
    notices, definitions = _deprecations(state), dict(state.definitions)
    for name, definition in state.definitions.items():
        if (own := texts[definition.origin]) is not None:
            inherited = _inherited(definition, state) if definition.origin else {}
            own = {**own, "common": {**inherited, **own.get("common", {})}}
            definition = _documented(definition, own, revision)
        definitions[name] = _noticed(definition, notices)
    methods = {
        name: replace(
            method,
            doc=definitions[method.definition].doc,
            handling=(texts[method.origin] or {}).get(method.definition, {}).get("handler", ""),
            deprecated=definitions[method.definition].deprecated,
        )
        for name, method in state.methods.items()
    }
    errors = tuple(
        replace(error, doc=error.doc or definitions[error.definition].doc) if error.definition else error
        for error in state.errors
    )
    return replace(state, definitions=definitions, methods=methods, errors=errors)


def entry(texts: Mapping[str, Any], name: str, revision: str) -> tuple[str, dict[str, str]]:
    """Return the descriptions of a definition and of its fields in one revision, from `docs.toml`.

    Words under `[NAME.since."DATE"]` hold from that revision on; fields that several definitions share are described
    once under `[common]`.
    """
    table = texts.get(name, {})
    doc, fields = table.get("doc", ""), {**texts.get("common", {}), **table.get("fields", {})}
    for since in sorted(table.get("since", {})):
        if has_reached(revision, since):
            doc = table["since"][since].get("doc", doc)
            fields |= table["since"][since].get("fields", {})
    return doc, fields


def _documented(definition: Definition, texts: Mapping[str, Any], revision: str) -> Definition:
    doc, fields = entry(texts, definition.name, revision)
    type = definition.type
    if isinstance(type, Object):
        type = replace(type, fields=tuple(replace(field, doc=fields.get(field.wire, "")) for field in type.fields))
    return replace(definition, doc=doc, type=type)


def _inherited(definition: Definition, state: BuildState) -> dict[str, str]:
    """Return the words of core for the members that a definition of an extension has from core."""
    docs = state.source.docs or {}
    found = dict[str, str](docs.get("common", {}))
    for name in _BASES:
        _, texts = entry(docs, name, state.source.revision)
        for field in state.fields_of(Ref(name)):
            own = state.field_of(definition.type, field.wire)
            if own is not None and own.type == field.type and field.wire in texts:
                found[field.wire] = texts[field.wire]
    return found


def _noticed(one: Definition, notices: Mapping[str, str]) -> Definition:
    """Return a definition with its notice, and those of its members."""
    type = one.type
    if isinstance(type, Object):
        found = (replace(it, deprecated=notices.get(f"{one.name}.{it.wire}", it.deprecated)) for it in type.fields)
        type = replace(type, fields=tuple(found))
    return replace(one, type=type, deprecated=notices.get(one.name, one.deprecated))


def _deprecations(state: BuildState) -> dict[str, str]:
    """Return `Definition` or `Definition.member` -> the notice that `semantics.toml` has for it in this revision."""
    found: dict[str, str] = {}
    for notice in [one for facts in state.source.all_facts for one in facts["deprecations"]]:
        if has_reached(state.source.revision, notice["since"]):
            names: Iterable[str] = notice["definitions"]
            found |= dict.fromkeys(names, f"since {notice['since']}: {notice['instead']}")
    return found
