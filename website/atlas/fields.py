"""Tables of fields, with the revisions in which they appeared, changed and disappeared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import Definition, Field, Object
from mcp_bindgen.ir.text import describe

from ..markdown import anchored, code, plain, table
from .model import Atlas, anchor, revision_link, type_words


def fields_table(atlas: Atlas, definition: Definition, names: Mapping[str, str], *, anchors: bool = False) -> str:
    """Return the fields of a definition, with those that older revisions had.

    Args:
        atlas: The revisions.
        definition: The definition in the newest revision that has it.
        names: Revision -> name of the definition there; empty for a definition of an extension.
        anchors: True to give each field an anchor.
    """
    if not isinstance(definition.type, Object):
        return ""
    known = {p.revision: _fields(p, names.get(p.revision)) for p in atlas.cores}
    first = next(iter(names), "")
    rows = [
        (
            anchored(field.wire, anchor(field.wire)) if anchors else code(field.wire),
            type_words(atlas, field.type),
            "yes" if field.required else "",
            _since(known, field.wire, first),
            _meaning(field),
        )
        for field in definition.type.fields
    ]
    current = {field.wire for field in definition.type.fields}
    rows += [
        (
            code(wire),
            type_words(atlas, field.type),
            "yes" if field.required else "",
            _span(start, end),
            plain(field.doc),
        )
        for wire, (field, start, end) in _former(known, current).items()
    ]
    return table(["field", "type", "required", "since", "meaning"], rows)


def _fields(protocol: Protocol, name: str | None) -> dict[str, Field]:
    type = protocol.definitions[name].type if name in protocol.definitions and name is not None else None
    return {field.wire: field for field in type.fields} if isinstance(type, Object) else {}


def _since(known: Mapping[str, Mapping[str, Field]], wire: str, first: str) -> str:
    """Return the first revision with a field, and those that changed it; empty for fields of an extension."""
    having = [(revision, fields[wire]) for revision, fields in known.items() if wire in fields]
    if not having:
        return ""
    start = having[0][0]
    words = "" if start == first else revision_link(start)
    changed = [
        revision
        for (_, old), (revision, new) in pairwise(having)
        if (describe(old.type, formats=True), old.required) != (describe(new.type, formats=True), new.required)
    ]
    if changed:
        words += f"{', ' if words else ''}changed in {', '.join(map(revision_link, changed))}"
    return words or "always"


def _former(known: Mapping[str, Mapping[str, Field]], current: set[str]) -> dict[str, tuple[Field, str, str]]:
    """Name -> field, first and last revision, of fields that the definition has no more."""
    found: dict[str, tuple[Field, str, str]] = {}
    for revision, fields in known.items():
        for wire, field in fields.items():
            if wire not in current:
                found[wire] = (field, found[wire][1] if wire in found else revision, revision)
    return found


def _span(start: str, end: str) -> str:
    return f"only {start}" if start == end else f"{start} to {end}"


def _meaning(field: Field) -> str:
    fallback = f" Default: {code(field.fallback)}." if field.fallback else ""
    return plain(field.doc) + fallback


def all_fields(atlas: Atlas) -> Iterator[tuple[str, list[str]]]:
    """Yield each name of a field with the definitions that have it, in any revision."""
    found: dict[str, set[str]] = {}
    for protocol in atlas.protocols:
        for name, definition in protocol.definitions.items():
            if isinstance(definition.type, Object):
                for field in definition.type.fields:
                    found.setdefault(field.wire, set()).add(name)
    for wire in sorted(found, key=str.lower):
        yield wire, sorted(found[wire])
