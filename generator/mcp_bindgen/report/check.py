"""Report of `check`: generated packages that differ from their schemas."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .document import Code, Document, Finding, Findings, Level, Place, Section, Verdict, Verdicts, code
from .render import Report

_RULE = "generated-code-drift"
_FILE = re.compile(
    r"^--- (?:/dev/null|(?P<old>.+) \(on disk\))\n"
    r"\+\+\+ (?:/dev/null|(?P<new>.+) \(from the schema\))\n@@ -(?P<line>\d+)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Drift:
    """Result for one package.

    Attributes:
        name: Name of the package.
        folder: Its folder.
        command: Command that regenerates it.
        difference: Unified diff from the files to the generated text; empty if they are in sync.
    """

    name: str
    folder: Path
    command: str
    difference: str


def drift_report(drifts: Sequence[Drift]) -> Report:
    """Return the report of packages: a section for each, with a finding for each file that differs."""

    def record() -> object:
        return [
            {
                "name": one.name,
                "folder": str(one.folder),
                "inSync": not one.difference,
                "files": [finding.place.file for finding in _findings(one)],
                "command": one.command,
            }
            for one in drifts
        ]

    return Report(lambda: Document("check", list(map(_section, drifts))), record)


def _section(drift: Drift) -> Section:
    outcome, level = ("differs", Level.ERROR) if drift.difference else ("in sync", Level.NOTE)
    verdict = Verdicts([Verdict("Generated code", outcome, level)])
    if not drift.difference:
        return Section(drift.name, [verdict])
    return Section(drift.name, [verdict, Findings(list(_findings(drift))), Code(drift.difference, "diff")])


def _findings(drift: Drift) -> Iterator[Finding]:
    fix = f"Run {code(drift.command)}."
    found = list(_FILE.finditer(drift.difference))
    for match in found:
        file = os.path.relpath(drift.folder.parent / (match["old"] or match["new"]))
        place = Place(file, line=max(1, int(match["line"])))
        yield Finding(_RULE, Level.ERROR, f"{code(file)} differs from the schema", fix=fix, place=place)
    if drift.difference and not found:
        place = Place(os.path.relpath(drift.folder))
        yield Finding(_RULE, Level.ERROR, f"{code(place.file)} differs from the schema", fix=fix, place=place)
