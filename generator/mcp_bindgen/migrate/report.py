"""Report of `migrate`, as a document and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from typing import Any

from mcp_bindgen.report import document as doc
from mcp_bindgen.spec.errors import several

from .result import Migration, Use

_MAX_IMPORTS = 4


def document(migration: Migration) -> doc.Document:
    """Return the report: a section for each file, then the imports and the files that were skipped."""
    return doc.Document("migrate", [doc.Section(_title(migration), list(_blocks(migration)))])


def record(migration: Migration) -> dict[str, Any]:
    """Return the report as JSON."""
    return {
        "old": migration.old,
        "new": migration.new,
        "files": migration.files,
        "found": migration.found,
        "uses": [
            {
                **asdict(use.place),
                "name": use.name,
                **asdict(use.change),
                "new": use.change.new or None,
                "fingerprint": use.change.fingerprint or None,
                "edit": use.edit is not None,
            }
            for use in migration.uses
        ],
        "imports": [
            {**asdict(place), "old": migration.old_package, "new": migration.new_package} for place in migration.moves
        ],
        "skipped": [asdict(skipped) for skipped in migration.skipped],
        "edited": sorted(migration.edited),
    }


def sentence(use: Use) -> str:
    """Return what changed about a name that is used."""
    change, owner = use.change, use.name.partition(".")[0]
    name = doc.code(use.name)
    match change.kind:
        case "gone":
            return f"{name} is gone"
        case "renamed":
            whole = f"{owner}.{change.new}" if use.name.count(".") == 1 and "(" not in use.name else change.new
            return f"{name} is {doc.code(whole)} now"
        case "needed":
            return f"{name} is required now: {doc.code(change.new)}"
        case "repeated":
            return f"{name} {doc.prose(change.new)}"
        case "changed" if not use.name:
            return doc.prose(change.new)
        case "changed":
            return f"{name} was {doc.code(change.old)}, is {doc.code(change.new)}"


def _blocks(migration: Migration) -> Iterator[doc.Block]:
    for file, uses in groupby(migration.uses, key=lambda use: use.place.file):
        yield doc.Section(doc.literal(file), [doc.Findings(list(map(_finding, uses)))])
    if migration.moves and not migration.edited:
        change = f"Import {doc.code(migration.new_package)} instead of {doc.code(migration.old_package)}"
        places = [f"{doc.literal(place.file)}:{place.line}" for place in migration.moves]
        yield doc.Paragraph(f"{change} in {several(places, _MAX_IMPORTS)}.")
    if not migration.found:
        others = " and ".join(map(doc.code, migration.others))
        imports = f"imports {others}" if others else "imports no bindings of mcp-bindgen"
        yield doc.Paragraph(f"The code {imports}. To name bindings of your own, use --package.")
    if migration.skipped:
        yield doc.Findings(
            [
                doc.Finding(
                    "file-skipped", doc.Level.WARNING, f"skipped: {doc.prose(one.reason)}", place=doc.Place(one.file)
                )
                for one in migration.skipped
            ]
        )


def _finding(use: Use) -> doc.Finding:
    return doc.Finding(
        rule=use.change.rule,
        level=doc.Level.ERROR,
        message=sentence(use),
        fix=doc.prose(use.change.hint),
        fingerprint=use.change.fingerprint,
        place=doc.Place(use.place.file, line=use.place.line, column=use.place.column),
    )


def _title(migration: Migration) -> str:
    files = doc.plural(migration.files, "file")
    title = f"MCP {doc.literal(migration.old)} → {doc.literal(migration.new)}"
    if not migration.found:
        return f"{title}: no bindings of MCP {doc.literal(migration.old)} found in {files}, as {migration.old_package}"
    if migration.edited:
        title = f"{title}: {doc.plural(len(migration.edited), 'file')} changed"
    if not migration.uses:
        return f"{title}{'' if migration.edited else f': nothing to change in {files}'}"
    changed = len({use.place.file for use in migration.uses})
    return f"{title}: {doc.plural(len(migration.uses), 'use')} to change in {changed} of {files}"
