"""Document model that every report is built in, and that every renderer reads.

Text is a `str` with two kinds of marks, which `code` and `strong` set. All other characters are literal; renderers
escape them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

_CODE, _STRONG = "\0", "\1"
_MARKS = str.maketrans("", "", _CODE + _STRONG)
_RUN = re.compile("(\0[^\0]*\0|\1[^\1]*\1)")
_BACKTICKS = re.compile("`([^`]*)`")


class Level(IntEnum):
    """Severity of a finding, as continuous integration knows it."""

    NOTE = 0
    WARNING = 1
    ERROR = 2


@dataclass(frozen=True)
class Place:
    """Place of a finding in a file.

    Attributes:
        file: Path or address of the file; empty if there is none.
        pointer: JSON Pointer (RFC 6901), for JSON documents.
        line: Line, from 1; 0 if it is not known.
        column: Column, from 1; 0 if it is not known.
    """

    file: str = ""
    pointer: str = ""
    line: int = 0
    column: int = 0


NOWHERE = Place()


@dataclass(frozen=True)
class Evidence:
    """Proof of a finding.

    Attributes:
        message: How both sides judge the value, or why there is no value.
        value: The JSON value, if `has_value`.
        has_value: True if there is a value.
    """

    message: str
    value: Any = None
    has_value: bool = False


@dataclass(frozen=True)
class Finding:
    """One finding.

    Attributes:
        rule: Id of the rule, e.g. `field-renamed`.
        level: Severity.
        message: The finding as one sentence, without a full stop.
        effect: Consequences, as full sentences.
        note: Further circumstances, as full sentences.
        fix: Fix, as full sentences.
        fingerprint: Digest that stays the same while the finding does.
        place: Where it is.
        evidence: Proof of it.
    """

    rule: str
    level: Level
    message: str
    effect: str = ""
    note: str = ""
    fix: str = ""
    fingerprint: str = ""
    place: Place = NOWHERE
    evidence: Evidence | None = None


@dataclass(frozen=True)
class Findings:
    """List of findings.

    Attributes:
        items: The findings.
        label: Heading of a compact list, in which each finding is a message only.
        are_names: True if the messages of a compact list are names rather than sentences.
    """

    items: Sequence[Finding]
    label: str = ""
    are_names: bool = False


@dataclass(frozen=True)
class Verdict:
    """Summary of one aspect: `Old client, new server: works`.

    Attributes:
        subject: The aspect.
        outcome: The verdict in a few words.
        level: Severity of the outcome.
        reasons: Reasons, as full sentences.
    """

    subject: str
    outcome: str
    level: Level
    reasons: Sequence[str] = ()


@dataclass(frozen=True)
class Verdicts:
    """List of verdicts."""

    items: Sequence[Verdict]


@dataclass(frozen=True)
class Paragraph:
    """Paragraph of text."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """List of short texts."""

    items: Sequence[str]


@dataclass(frozen=True)
class Table:
    """Table with a header; every row has one cell for each column."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Code:
    """Block of code or of another format, printed as it is.

    Attributes:
        text: The text, with its line breaks.
        language: Name of the format, e.g. `toml` or `diff`.
    """

    text: str
    language: str = ""


@dataclass(frozen=True)
class Section:
    """Section with a title; sections nest."""

    title: str
    blocks: Sequence[Block]


Block: TypeAlias = Section | Findings | Verdicts | Paragraph | Bullets | Table | Code


@dataclass(frozen=True)
class Document:
    """A whole report.

    Attributes:
        command: Words of the command that made it, e.g. `contract diff`.
        sections: The sections at the top level.
        levels: Words for the levels of its findings, from `NOTE` on.
    """

    command: str
    sections: Sequence[Section]
    levels: Sequence[str] = tuple(level.name.lower() for level in Level)


def findings_of(block: Block) -> Iterator[Finding]:
    """Yield the findings in a block, in order."""
    match block:
        case Findings(items):
            yield from items
        case Section(_, blocks):
            for inner in blocks:
                yield from findings_of(inner)
        case _:
            return


def verdicts_of(section: Section) -> Iterator[Verdict]:
    """Yield the verdicts directly in a section."""
    for block in section.blocks:
        if isinstance(block, Verdicts):
            yield from block.items


# --- text with marks ------------------------------------------------------------------------------------------------


def code(text: str) -> str:
    """Return `text`, which may come from anywhere, marked as code."""
    return f"{_CODE}{text.translate(_MARKS)}{_CODE}"


def strong(text: str) -> str:
    """Return `text` marked as important."""
    return f"{_STRONG}{text.translate(_MARKS)}{_STRONG}"


def prose(text: str) -> str:
    """Return `text`, which may come from anywhere, with the parts between backticks marked as code."""
    return _BACKTICKS.sub(lambda part: code(part[1]), text.translate(_MARKS))


def literal(text: str) -> str:
    """Return `text`, which may come from anywhere, without marks."""
    return text.translate(_MARKS)


def runs(text: str) -> Iterator[tuple[str, str]]:
    """Yield kind (`code`, `strong` or `plain`) and text of each part of a marked text."""
    for part in _RUN.split(text):
        if part.startswith((_CODE, _STRONG)) and len(part) > 1:
            yield ("code" if part[0] == _CODE else "strong"), part[1:-1]
        elif part:
            yield "plain", part


def unmarked(text: str) -> str:
    """Return a marked text without its marks."""
    return text.translate(_MARKS)


def plain_title(section: Section) -> str:
    """Return the title of a section in ASCII, as far as it is ours."""
    return unmarked(section.title).replace(" → ", " -> ")


def sentence(text: str) -> str:
    """Return a text with a full stop, if it has any words and no stop yet."""
    return text if not text or text.endswith((".", "?", "!", ":")) else f"{text}."


def plural(count: int, one: str, many: str = "") -> str:
    """Return `1 change`, `2 changes`."""
    return f"{count} {one if count == 1 else many or one + 's'}"
