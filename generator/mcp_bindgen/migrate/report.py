"""Report of `migrate`, as a document and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import groupby
from typing import Any

from mcp_bindgen.report.document import (
    Block,
    Document,
    Finding,
    Findings,
    Level,
    Paragraph,
    Section,
    code,
    literal,
    plural,
    prose,
)
from mcp_bindgen.report.document import Place as FilePlace
from mcp_bindgen.spec.errors import several

from .result import Migration, Use

_MAX_IMPORTS = 4


def document(migration: Migration) -> Document:
    """Return the report: a section for each file, then the imports and the files that were skipped."""
    return Document("migrate", [Section(_title(migration), list(_blocks(migration)))])


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
    name = code(use.name)
    match change.kind:
        case "gone":
            return f"{name} is gone"
        case "renamed":
            whole = f"{owner}.{change.new}" if use.name.count(".") == 1 and "(" not in use.name else change.new
            return f"{name} is {code(whole)} now"
        case "needed":
            return f"{name} is required now: {code(change.new)}"
        case "repeated":
            return f"{name} {prose(change.new)}"
        case "changed" if not use.name:
            return prose(change.new)
        case "changed":
            return f"{name} was {code(change.old)}, is {code(change.new)}"


def _blocks(migration: Migration) -> Iterator[Block]:
    for file, uses in groupby(migration.uses, key=lambda use: use.place.file):
        yield Section(literal(file), [Findings(list(map(_finding, uses)))])
    if migration.moves and not migration.edited:
        change = f"Import {code(migration.new_package)} instead of {code(migration.old_package)}"
        places = [f"{literal(place.file)}:{place.line}" for place in migration.moves]
        yield Paragraph(f"{change} in {several(places, _MAX_IMPORTS)}.")
    if not migration.found:
        others = " and ".join(map(code, migration.others))
        imports = f"imports {others}" if others else "imports no bindings of mcp-bindgen"
        yield Paragraph(f"The code {imports}. To name bindings of your own, use --package.")
    if migration.skipped:
        yield Findings(
            [
                Finding("file-skipped", Level.WARNING, f"skipped: {prose(one.reason)}", place=FilePlace(one.file))
                for one in migration.skipped
            ]
        )


def _finding(use: Use) -> Finding:
    return Finding(
        rule=use.change.rule,
        level=Level.ERROR,
        message=sentence(use),
        fix=prose(use.change.hint),
        fingerprint=use.change.fingerprint,
        place=FilePlace(use.place.file, line=use.place.line, column=use.place.column),
    )


def _title(migration: Migration) -> str:
    files = plural(migration.files, "file")
    title = f"MCP {literal(migration.old)} → {literal(migration.new)}"
    if not migration.found:
        return f"{title}: no bindings of MCP {literal(migration.old)} found in {files}, as {migration.old_package}"
    if migration.edited:
        title = f"{title}: {plural(len(migration.edited), 'file')} changed"
    if not migration.uses:
        return f"{title}{'' if migration.edited else f': nothing to change in {files}'}"
    changed = len({use.place.file for use in migration.uses})
    return f"{title}: {plural(len(migration.uses), 'use')} to change in {changed} of {files}"
