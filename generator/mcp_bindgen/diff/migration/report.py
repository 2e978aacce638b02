"""What a migration looks like: text, JSON, and annotations of a GitHub workflow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from itertools import groupby
from typing import Any

from mcp_bindgen.spec.errors import printable

from ..reports.github import command
from ..reports.terminal import BOLD, CYAN, DIM, RED, YELLOW, Terminal
from ..reports.words import plural
from .result import Migration, Place, Use

_INDENT = 11
_COLOURS = {"gone": RED, "needed": RED, "repeated": RED, "renamed": CYAN, "changed": YELLOW}
_HERE = 4
"""How many imports are listed."""


class Format(StrEnum):
    """A form of the report."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def sentence(use: Use) -> str:
    """Return what became of something that is used."""
    change, owner = use.change, use.name.partition(".")[0]
    perhaps = "" if use.certain else "perhaps "
    match change.kind:
        case "gone":
            return f"{perhaps}{use.name} is gone"
        case "renamed":
            whole = f"{owner}.{change.new}" if use.name.count(".") == 1 and "(" not in use.name else change.new
            return f"{perhaps}{use.name} is {whole} now"
        case "needed":
            return f"{perhaps}{use.name} has to be given now: {change.new}"
        case "repeated":
            return f"{perhaps}{use.name} {change.new}"
        case "changed":
            return f"{perhaps}{use.name} was: {change.old}; is: {change.new}"


def text(migration: Migration, *, width: int = 80, colour: bool = False) -> str:
    """The report as plain text."""
    return "".join(f"{line.rstrip()}\n" for line in _Printer(width, colour).lines(migration))


class _Printer(Terminal):
    def lines(self, migration: Migration) -> Iterator[str]:
        """The whole report: what there is to change, and what must change anyhow."""
        yield self.style(_title(migration), BOLD)
        for file, found in groupby(migration.uses, key=lambda use: use.place.file):
            yield ""
            yield self.style(printable(file), BOLD)
            for place, uses in groupby(found, key=lambda use: use.place):
                yield from self.place(place, list(uses))
        if migration.imports:
            yield ""
            said = f"Import {migration.new_package} instead of {migration.old_package} in"
            yield from self.folded(f"{said}: {_listed(migration.imports)}.", 0)
        if not migration.found:
            others = f"imports {' and '.join(migration.others)}" if migration.others else "imports none of ours"
            yield from self.folded(f"The code {others}; --package names bindings of your own.", 0)
        for skipped in migration.skipped:
            yield from self.folded(f"Skipped {skipped.file}: {skipped.reason}.", 0)

    def place(self, place: Place, uses: list[Use]) -> Iterator[str]:
        """All that there is to say about one place."""
        where = f"  {place.line}:{place.column}".ljust(_INDENT)
        for use in uses:
            first, *rest = self.folded(sentence(use), _INDENT)
            yield where + self.style(first.strip(), _COLOURS[use.change.kind])
            yield from (self.style(line, _COLOURS[use.change.kind]) for line in rest)
            yield from self.folded(use.change.hint, _INDENT)
            rule = f"{use.change.rule} {use.change.fingerprint}".strip()
            yield from (self.style(line, DIM) for line in self.folded(rule, _INDENT))
            where = " " * _INDENT


def _title(migration: Migration) -> str:
    files = plural(migration.files, "file")
    title = f"MCP {printable(migration.old)} -> {printable(migration.new)}"
    if not migration.found:
        return f"{title}: no bindings of MCP {printable(migration.old)} found in {files}, as {migration.old_package}"
    if not migration.uses:
        return f"{title}: nothing to change in {files}"
    hit = len({use.place.file for use in migration.uses})
    sure = Counter(use.certain for use in migration.uses)
    counts = [plural(sure[True], "use")] if sure[True] else []
    counts += [f"perhaps {plural(sure[False], 'use')}"] if sure[False] else []
    return f"{title}: {' and '.join(counts)} to change in {hit} of {files}"


def _listed(places: tuple[Place, ...]) -> str:
    shown = ", ".join(f"{place.file}:{place.line}" for place in places[:_HERE])
    return shown + (f" and {len(places) - _HERE} more" if len(places) > _HERE else "")


def record(migration: Migration) -> dict[str, Any]:
    """The report for programs."""
    return {
        "old": migration.old,
        "new": migration.new,
        "files": migration.files,
        "found": migration.found,
        "uses": [
            {
                **asdict(use.place),
                "name": use.name,
                "kind": use.change.kind,
                "certain": use.certain,
                "rule": use.change.rule,
                "subject": use.change.subject,
                "old": use.change.old,
                "new": use.change.new or None,
                "hint": use.change.hint,
                "fingerprint": use.change.fingerprint or None,
            }
            for use in migration.uses
        ],
        "imports": [
            {**asdict(place), "old": migration.old_package, "new": migration.new_package} for place in migration.imports
        ],
        "skipped": [asdict(skipped) for skipped in migration.skipped],
    }


def github(migration: Migration) -> str:
    """The report as workflow commands: what is certain is an error, the rest is a warning."""
    lines = [command("notice", _title(migration), title=f"MCP {migration.old} -> {migration.new}")]
    for use in migration.uses:
        place, words = use.place, f"{sentence(use)}. {use.change.hint}"
        level, rule = "error" if use.certain else "warning", use.change.rule
        lines.append(command(level, words, file=place.file, line=place.line, col=place.column, title=rule))
    lines += [command("warning", f"Skipped: {one.reason}", file=one.file) for one in migration.skipped]
    return "".join(f"{line}\n" for line in lines)
