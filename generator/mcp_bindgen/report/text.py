"""Text renderer: lines that fit a terminal, with colour where one shows it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from mcp_bindgen.spec.errors import printable, shortened

from . import document as doc
from .within import within

_BOLD, _DIM = "1", "2"
_LEVELS = {doc.Level.ERROR: "31", doc.Level.WARNING: "33", doc.Level.NOTE: "32"}
_MIN_WIDTH = 40
_MIN_COLUMN = 8
_PLACE_WIDTH = 9
_MAX_EVIDENCE_CHARS = 400


@dataclass(frozen=True)
class Page:
    """Page that text is laid out for.

    Attributes:
        width: Number of columns at which lines fold.
        colour: True for a terminal that shows colours.
        folds_tables: True if tables fold too; programs that read a pipe want one line for each row.
        max_lines: Number of lines beyond which findings are counted instead of listed, the least important first.
    """

    width: int = 80
    colour: bool = False
    folds_tables: bool = False
    max_lines: int | None = None


def text(document: doc.Document, page: Page | None = None) -> str:
    """Return a document as text that ends with a line break."""
    printer = _Printer(page or Page())
    return within(document, printer.document, printer.fits, "--full lists them.")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], page: Page) -> Iterator[str]:
    """Yield the lines of a table with aligned columns."""
    cells = [[_line(cell) for cell in row] for row in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    while page.folds_tables and sum(widths) + 2 * len(widths) > page.width and max(widths) > _MIN_COLUMN:
        widths[widths.index(max(widths))] -= 1
    printer = _Printer(page)
    for number, row in enumerate(cells):
        folded = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
        for index in range(max(map(len, folded))):
            parts = [lines[index] if index < len(lines) else "" for lines in folded]
            line = "  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip()
            yield printer.style(line, *([_BOLD] if number == 0 else []))


class _Printer:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.width = max(page.width, _MIN_WIDTH)

    def document(self, document: doc.Document) -> str:
        parts = [list(self.section(section, 1)) for section in document.sections]
        return "\n".join(line.rstrip() for line in _separated(parts)) + "\n"

    def fits(self, text: str) -> bool:
        return self.page.max_lines is None or text.count("\n") <= self.page.max_lines

    def style(self, line: str, *codes: str) -> str:
        return f"\x1b[{';'.join(codes)}m{line}\x1b[0m" if self.page.colour and codes and line else line

    def folded(self, words: str, indent: int, more: int = 0) -> list[str]:
        """Return words in lines behind `indent` columns, `more` of them from the second line on."""
        margin = " " * indent
        return textwrap.wrap(
            _line(words),
            self.width,
            initial_indent=margin,
            subsequent_indent=margin + " " * more,
            break_on_hyphens=False,
            break_long_words=False,
        )

    def section(self, section: doc.Section, depth: int) -> Iterator[str]:
        title = " ".join(self.folded(doc.plain_title(section), 0))
        if depth == 2:
            title = f"{title} {'-' * (self.width - len(title) - 1)}"
        blocks = [list(self.block(block, depth)) for block in section.blocks]
        heading = [self.style(line, _DIM if depth == 2 else _BOLD) for line in self.folded(title, 0)] if title else []
        if depth > 2:
            yield from chain(heading, *blocks)
        elif depth == 2 and section.blocks and not isinstance(section.blocks[0], doc.Section):
            yield from _separated([[*heading, *blocks[0]], *blocks[1:]])
        else:
            yield from _separated([heading, *blocks])

    def block(self, block: doc.Block, depth: int) -> Iterator[str]:
        match block:
            case doc.Section():
                yield from self.section(block, depth + 1)
            case doc.Verdicts(items):
                for verdict in items:
                    yield from self.verdict(verdict)
            case doc.Paragraph(words):
                yield from self.folded(words, 0)
            case doc.Bullets(items):
                for item in items:
                    yield from self.folded(item, 2, 2)
            case doc.Table(columns, rows):
                yield from table(columns, rows, self.page)
            case doc.Code(content):
                yield from (printable(line, keep="\t") for line in content.splitlines())
            case doc.Findings(items, ""):
                for finding in items:
                    yield from self.finding(finding)
            case doc.Findings(items, label):
                yield self.style(f"{label} ({len(items)})", _BOLD)
                for finding in items:
                    yield from self.folded(f"{finding.message} {finding.fingerprint}", 2, 2)

    def verdict(self, verdict: doc.Verdict) -> Iterator[str]:
        yield f"{_line(verdict.subject)}: {self.style(verdict.outcome, _BOLD, _LEVELS[verdict.level])}"
        for reason in verdict.reasons:
            yield from self.folded(reason, 2)

    def finding(self, finding: doc.Finding) -> Iterator[str]:
        where, indent = _where(finding.place)
        colour = [_LEVELS[finding.level]] if finding.level is not doc.Level.NOTE else []
        message = where + finding.message
        first, *rest = self.folded(
            f"{doc.sentence(message)} {finding.effect}" if finding.effect else message, indent, 2
        )
        margin = f"  {finding.place.line}:{finding.place.column}".ljust(indent) if indent > 2 else first[:indent]
        yield margin + self.style(first[indent:], *colour)
        yield from (self.style(line, *colour) for line in rest)
        yield from self.folded(f"{finding.note} {finding.fix}", indent + 2)
        if finding.evidence is not None:
            yield from self.folded(_evidence(finding.evidence), indent + 2)
        if finding.fingerprint:
            reference = self.folded(f"{finding.rule} {finding.fingerprint}", indent + 2)
            yield from (self.style(line, _DIM) for line in reference)


def _separated(parts: Sequence[Sequence[str]]) -> list[str]:
    """Return all lines, with an empty line between two parts."""
    return [line for part in parts if part for line in ("", *part)][1:]


def _where(place: doc.Place) -> tuple[str, int]:
    """Return the words for a place in front of a message, and the indentation of the message."""
    if place.line and not place.pointer:
        return "", 2 + _PLACE_WIDTH
    anchor = f"#{place.pointer}" if place.pointer else ""
    return (f"{place.file}{anchor}: " if place.file else ""), 2


def _evidence(evidence: doc.Evidence) -> str:
    if not evidence.has_value:
        return doc.sentence(evidence.message)
    value = json.dumps(evidence.value, ensure_ascii=False)
    return f"{evidence.message}: {shortened(value, _MAX_EVIDENCE_CHARS)}"


def _line(words: str) -> str:
    """Return words as one line without marks, and without characters that a terminal obeys."""
    return printable(" ".join(doc.unmarked(words).split()))
