"""Put words to definitions, fields and methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mcp_bindgen.spec.revisions import has_reached

from ..model import Definition, Object
from .draft import Draft


def document(draft: Draft) -> Draft:
    """Take the words from `docs.toml`, or keeps the prose of a file that brings its own; adds deprecations."""
    words = {origin: _words(draft, origin) for origin in ("", *(one.id for one in draft.source.extensions))}
    revision = draft.source.revision
    definitions = dict(draft.definitions)
    for name, definition in draft.definitions.items():
        if (own := words[definition.origin]) is not None:
            definitions[name] = _documented(definition, own, revision)
    gone = _deprecations(draft)
    definitions = {name: replace(definition, deprecated=gone.get(name, "")) for name, definition in definitions.items()}
    methods = {
        name: replace(
            method,
            doc=definitions[method.definition].doc,
            handling=(words[method.origin] or {}).get(method.definition, {}).get("handler", ""),
            deprecated=gone.get(method.definition, ""),
        )
        for name, method in draft.methods.items()
    }
    errors = tuple(
        replace(error, doc=error.doc or definitions[error.definition].doc) if error.definition else error
        for error in draft.errors
    )
    return replace(draft, definitions=definitions, methods=methods, errors=errors)


def entry(words: Mapping[str, Any], name: str, revision: str) -> tuple[str, dict[str, str]]:
    """Return what `docs.toml` says of a definition in one revision: its doc, and the docs of its fields.

    Words under `[NAME.since."DATE"]` hold from that revision on; fields that several definitions share are described
    once under `[common]`.
    """
    table = words.get(name, {})
    doc, fields = table.get("doc", ""), {**words.get("common", {}), **table.get("fields", {})}
    for since in sorted(table.get("since", {})):
        if has_reached(revision, since):
            doc = table["since"][since].get("doc", doc)
            fields |= table["since"][since].get("fields", {})
    return doc, fields


def _documented(definition: Definition, words: Mapping[str, Any], revision: str) -> Definition:
    doc, fields = entry(words, definition.name, revision)
    type = definition.type
    if isinstance(type, Object):
        type = replace(type, fields=tuple(replace(field, doc=fields.get(field.wire, "")) for field in type.fields))
    return replace(definition, doc=doc, type=type)


def _words(draft: Draft, origin: str) -> Mapping[str, Any] | None:
    """Return the words for what is of `origin`; an extension has those of core for members that all share."""
    words = draft.source.words(origin)
    if words is None or not origin:
        return words
    shared = (draft.source.docs or {}).get("common", {})
    return {**words, "common": {**shared, **words.get("common", {})}}


def _deprecations(draft: Draft) -> dict[str, str]:
    """Return definition -> the notice that `semantics.toml` has for it in this revision."""
    found: dict[str, str] = {}
    for notice in [one for facts in draft.source.all_facts for one in facts["deprecations"]]:
        if has_reached(draft.source.revision, notice["since"]):
            names: Iterable[str] = notice["definitions"]
            found |= dict.fromkeys(names, f"since {notice['since']}: {notice['instead']}")
    return found
