"""Reports of a limited size: they list the first findings of sections and count the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from sys import maxsize

from .document import Block, Document, Findings, Paragraph, Section, findings_of, unmarked

_KEPT = [
    *((maxsize, notes) for notes in (maxsize, 96, 64, 48, 32, 24, 16, 8, 0)),
    *((others, 0) for others in (96, 64, 48, 32, 24, 16, 12, 8, 4, 2, 1, 0)),
]
"""Numbers of findings that a comparison lists, in the order in which they are tried: in sections with findings above
`NOTE`, and in other sections. The first sections take theirs first."""


def within(document: Document, render: Callable[[Document], str], fits: Callable[[str], bool], rest: str) -> str:
    """Return a report in the first form that fits, or in its shortest one.

    Args:
        document: The report.
        render: Function from a document to the text.
        fits: Function that returns True for a text that is short enough.
        rest: Sentence that names the way to the findings that are only counted.
    """
    text = ""
    for kept in _KEPT:
        text = render(replace(document, sections=[_limited(one, *kept, rest) for one in document.sections]))
        if fits(text):
            break
    return text


def _limited(section: Section, others: int, notes: int, rest: str) -> Section:
    blocks: list[Block] = []
    for block in section.blocks:
        found = list(findings_of(block))
        if any(finding.level for finding in found):
            most, others = others, max(0, others - len(found))
        else:
            most, notes = notes, max(0, notes - len(found))
        blocks += _first(block, most) if found else [block]
        if left := Counter(finding.rule for finding in found[most:]):
            title = f"{unmarked(block.title)}: " if isinstance(block, Section) else ""
            rules = ", ".join(f"{rule} ({count})" for rule, count in left.most_common())
            blocks.append(Paragraph(f"{title}{left.total()} more: {rules}. {rest}"))
    return replace(section, blocks=blocks)


def _first(block: Block, most: int) -> Iterator[Block]:
    """Yield a block with its first findings; nothing if none are left."""
    if isinstance(block, Section):
        inner: list[Block] = []
        for one in block.blocks:
            inner += _first(one, most)
            most -= sum(1 for _ in findings_of(one))
        if inner:
            yield replace(block, blocks=inner)
    elif not isinstance(block, Findings):
        yield block
    elif most > 0:
        yield replace(block, items=block.items[:most])
