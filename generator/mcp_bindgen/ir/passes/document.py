"""Add descriptions to definitions, fields and methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mcp_bindgen.spec.revisions import has_reached

from ..model import Definition, Object, Ref
from .build_state import BuildState

_Texts = Mapping[str, Any]
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
        definitions[name] = _documented(definition, own, revision, notices)
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


def entry(texts: _Texts, name: str, revision: str) -> tuple[str, dict[str, str]]:
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


def _documented(one: Definition, texts: _Texts | None, revision: str, notices: Mapping[str, str]) -> Definition:
    """Return a definition with descriptions of ours, if there are any, and with notices."""
    type = one.type
    fields = type.fields if isinstance(type, Object) else ()
    doc, words = (one.doc, {it.wire: it.doc for it in fields}) if texts is None else entry(texts, one.name, revision)
    if isinstance(type, Object):
        of = ((it, words.get(it.wire, ""), notices.get(f"{one.name}.{it.wire}", it.deprecated)) for it in fields)
        type = replace(type, fields=tuple(replace(it, doc=text, deprecated=note) for it, text, note in of))
    return replace(one, doc=doc, type=type, deprecated=notices.get(one.name, one.deprecated))


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


def _deprecations(state: BuildState) -> dict[str, str]:
    """Return `Definition` or `Definition.member` -> the notice that `semantics.toml` has for it in this revision."""
    found: dict[str, str] = {}
    for notice in [one for facts in state.source.all_facts for one in facts["deprecations"]]:
        if has_reached(state.source.revision, notice["since"]):
            names: Iterable[str] = notice["definitions"]
            found |= dict.fromkeys(names, f"since {notice['since']}: {notice['instead']}")
    return found
