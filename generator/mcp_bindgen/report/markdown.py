"""Markdown renderer, for changelogs, issues and summaries of workflows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from mcp_bindgen.spec.errors import printable
from mcp_bindgen.spec.markdown import code_span, escaped, joined

from . import document as doc
from .within import within

_LIVE = re.compile(r"@|:(?=//)|\bwww(?=\.)|#(?=\d)|~(?=~)")
"""Text that sites like GitHub turn into mentions, links and crossed out text, also behind a backslash."""


def markdown(document: doc.Document) -> str:
    """Return a document as Markdown that ends with a line break."""
    sections = ["\n".join(_section(section, 1)).rstrip() for section in document.sections]
    return "\n\n".join(sections) + "\n"


def bounded(document: doc.Document, max_bytes: int) -> str:
    """Return a document as Markdown of at most `max_bytes` bytes; as far as necessary, findings are only counted."""
    rest = f"{doc.code(f'mcp-bindgen {document.command} --format markdown')} lists them."
    text = within(document, markdown, lambda text: len(text.encode()) <= max_bytes, rest)
    if len(text.encode()) <= max_bytes:
        return text
    note = "\n\nThe report is longer.\n"
    return text.encode()[: max_bytes - len(note)].decode("utf-8", "ignore").rpartition("\n")[0] + note


def _section(section: doc.Section, depth: int) -> Iterator[str]:
    yield f"{'#' * depth} {_inline(section.title)}"
    for block in section.blocks:
        yield ""
        yield from _block(block, depth)


def _block(block: doc.Block, depth: int) -> Iterator[str]:
    match block:
        case doc.Section():
            yield from _section(block, depth + 1)
        case doc.Verdicts(items):
            yield from map(_verdict, items)
        case doc.Paragraph(words):
            yield _inline(words)
        case doc.Bullets(items):
            yield from (f"- {_inline(item)}" for item in items)
        case doc.Table(columns, rows):
            yield f"| {' | '.join(map(_cell, columns))} |"
            yield f"| {' | '.join('---' for _ in columns)} |"
            yield from (f"| {' | '.join(map(_cell, row))} |" for row in rows)
        case doc.Code(content, language):
            yield from _fenced(content, language)
        case doc.Findings(items, ""):
            for finding in items:
                yield from _finding(finding)
        case doc.Findings(items, label, are_names):
            yield f"{_strong(label)} ({len(items)}):"
            if are_names:
                yield f"{', '.join(_inline(finding.message) for finding in items)}."
            else:
                yield ""
                yield from (f"- {doc.sentence(_inline(finding.message))}" for finding in items)


def _verdict(verdict: doc.Verdict) -> str:
    reasons = " ".join(map(_inline, verdict.reasons))
    return f"- {_strong(f'{verdict.subject}: {verdict.outcome}.')} {reasons}".rstrip()


def _finding(finding: doc.Finding) -> Iterator[str]:
    place = finding.place
    anchor = f"#{place.pointer}" if place.pointer else f":{place.line}" if place.line else ""
    where = f"{code_span(place.file + anchor)}: " if place.file and not finding.fingerprint else ""
    yield f"- {where}{doc.sentence(_inline(finding.message))} {_inline(finding.effect)}".rstrip()
    more = " ".join(_inline(words) for words in (finding.note, finding.fix) if words)
    if more:
        yield f"  {more}"
    if finding.evidence is not None:
        yield from _evidence(finding.evidence)
    if finding.fingerprint:
        yield f'  <sub title="{finding.fingerprint}">{_inert(finding.rule)}</sub>'


def _evidence(evidence: doc.Evidence) -> Iterator[str]:
    yield f"  {doc.sentence(_inline(evidence.message + (':' if evidence.has_value else '')))}"
    if evidence.has_value:
        value = json.dumps(evidence.value, ensure_ascii=False, indent=2)
        yield from ("", *(f"  {line}" for line in _fenced(value, "json")), "")


def _fenced(content: str, language: str) -> Iterator[str]:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", content)), default=0))
    yield f"{fence}{language}"
    yield from map(printable, content.splitlines())
    yield fence


def _cell(words: str) -> str:
    """Return a marked text for a cell of a table, where a bar would end the cell."""
    return _inline(words.replace("|", "\u00a6"))


def _inline(words: str) -> str:
    """Return a marked text as one line of Markdown."""
    write = {"code": code_span, "strong": _strong, "plain": _inert}
    return joined(write[kind](part) for kind, part in doc.runs(" ".join(words.split())))


def _strong(text: str) -> str:
    return f"**{_inert(text)}**"


def _inert(text: str) -> str:
    """Return text in which nothing is Markdown, a mention or a link; a space without width breaks the latter."""
    return _LIVE.sub(r"\g<0>&#8203;", escaped(text))
