"""What a migration looks like: text, JSON, and annotations of a GitHub workflow."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import Migration, Place, Use

_INDENT = 11
_BOLD, _DIM, _RED, _YELLOW, _CYAN = "1", "2", "31", "33", "36"
_COLOURS = {"gone": _RED, "needed": _RED, "renamed": _CYAN, "changed": _YELLOW}
_HERE = 4
"""How many imports are listed."""


class Format(StrEnum):
    """A form of the report."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def sentence(use: Use) -> str:
    """What became of something that is used."""
    effect, owner = use.effect, use.name.partition(".")[0]
    perhaps = "" if use.certain else "perhaps "
    match effect.kind:
        case "gone":
            return f"{perhaps}{use.name} is gone"
        case "renamed":
            whole = f"{owner}.{effect.new}" if use.name.count(".") == 1 and "(" not in use.name else effect.new
            return f"{perhaps}{use.name} is {whole} now"
        case "needed":
            return f"{perhaps}{use.name} has to be given now: {effect.new}"
        case "changed":
            return f"{perhaps}{use.name} was: {effect.old}; is: {effect.new}"


def text(migration: Migration, *, width: int = 80, colour: bool = False) -> str:
    """The report as plain text."""
    return "".join(f"{line.rstrip()}\n" for line in _Printer(width, colour).lines(migration))


class _Printer:
    def __init__(self, width: int, colour: bool) -> None:
        self.width, self.colour = max(width, 40), colour

    def style(self, words: str, code: str) -> str:
        return f"\x1b[{code}m{words}\x1b[0m" if self.colour else words

    def folded(self, words: str, indent: int) -> list[str]:
        lines = textwrap.wrap(_printable(words), self.width - indent, break_on_hyphens=False)
        return [" " * indent + line for line in lines]

    def lines(self, migration: Migration) -> Iterator[str]:
        """The whole report: what there is to change, and what must change anyhow."""
        yield self.style(_title(migration), _BOLD)
        for file, found in groupby(migration.uses, key=lambda use: use.place.file):
            yield ""
            yield self.style(_printable(file), _BOLD)
            for place, uses in groupby(found, key=lambda use: use.place):
                yield from self.place(place, list(uses))
        if migration.imports:
            yield ""
            yield from self.folded(f"{_imports(migration)}: {_listed(migration.imports)}.", 0)
        for skipped in migration.skipped:
            yield from self.folded(f"Skipped {skipped.file}: {skipped.reason}.", 0)

    def place(self, place: Place, uses: list[Use]) -> Iterator[str]:
        """All that there is to say about one place."""
        where = f"  {place.line}:{place.column}".ljust(_INDENT)
        for use in uses:
            first, *rest = self.folded(sentence(use), _INDENT)
            yield where + self.style(first.strip(), _COLOURS[use.effect.kind])
            yield from (self.style(line, _COLOURS[use.effect.kind]) for line in rest)
            yield from self.folded(use.effect.hint, _INDENT)
            for line in self.folded(_rule(use), _INDENT):
                yield self.style(line, _DIM)
            where = " " * _INDENT


def _title(migration: Migration) -> str:
    files = _plural(migration.files, "file")
    title = f"MCP {_printable(migration.old)} -> {_printable(migration.new)}"
    if not migration.uses:
        return f"{title}: nothing to change in {files}"
    hit = len({use.place.file for use in migration.uses})
    sure = Counter(use.certain for use in migration.uses)
    counts = [_plural(sure[True], "use")] if sure[True] else []
    counts += [f"perhaps {_plural(sure[False], 'use')}"] if sure[False] else []
    return f"{title}: {' and '.join(counts)} to change in {hit} of {files}"


def _imports(migration: Migration) -> str:
    return f"Import {migration.new_package} instead of {migration.old_package} in"


def _listed(places: tuple[Place, ...]) -> str:
    shown = ", ".join(f"{place.file}:{place.line}" for place in places[:_HERE])
    return shown + (f" and {len(places) - _HERE} more" if len(places) > _HERE else "")


def _rule(use: Use) -> str:
    return f"{use.effect.rule} {use.effect.fingerprint}".strip()


def _plural(count: int, one: str) -> str:
    return f"{count} {one}" if count == 1 else f"{count} {one}s"


def _printable(words: str) -> str:
    """`words` without what a terminal would obey: schemas and files come from anywhere."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in words)


def record(migration: Migration) -> dict[str, Any]:
    """The report for programs."""
    return {
        "old": migration.old,
        "new": migration.new,
        "files": migration.files,
        "uses": [
            {
                **_place(use.place),
                "name": use.name,
                "kind": use.effect.kind,
                "certain": use.certain,
                "rule": use.effect.rule,
                "subject": use.effect.subject,
                "old": use.effect.old,
                "new": use.effect.new or None,
                "hint": use.effect.hint,
                "fingerprint": use.effect.fingerprint or None,
            }
            for use in migration.uses
        ],
        "imports": [
            {**_place(place), "old": migration.old_package, "new": migration.new_package} for place in migration.imports
        ],
        "skipped": [{"file": skipped.file, "reason": skipped.reason} for skipped in migration.skipped],
    }


def _place(place: Place) -> dict[str, Any]:
    return {"file": place.file, "line": place.line, "column": place.column}


def github(migration: Migration) -> str:
    """The report as workflow commands: what is certain is an error, the rest is a warning."""
    lines = [f"::notice title=MCP {_property(migration.old)} -> {_property(migration.new)}::{_data(_title(migration))}"]
    for use in migration.uses:
        command, place = "error" if use.certain else "warning", use.place
        where = f"file={_property(place.file)},line={place.line},col={place.column},title={_property(use.effect.rule)}"
        lines.append(f"::{command} {where}::{_data(f'{sentence(use)}. {use.effect.hint}')}")
    for skipped in migration.skipped:
        lines.append(f"::warning file={_property(skipped.file)}::{_data(f'Skipped: {skipped.reason}')}")
    return "".join(f"{line}\n" for line in lines)


def _data(words: str) -> str:
    """`words` as the data of a workflow command, which ends with its line."""
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(words: str) -> str:
    """`words` as a property of a workflow command, which ends with a comma or a colon."""
    return _data(words).replace(":", "%3A").replace(",", "%2C")
