"""GitHub renderer: workflow commands, which GitHub shows as annotations of files."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_bindgen.spec.errors import printable

from .document import (
    Document,
    Finding,
    Level,
    Paragraph,
    Section,
    findings_of,
    plain_title,
    sentence,
    unmarked,
    verdicts_of,
)

_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning"}


def github(document: Document) -> str:
    """Return a document as workflow commands: notices with verdicts and summaries, then the findings, the worst first.

    Findings of level `NOTE` are left out, because a workflow shows only the first few annotations of each kind.
    """
    return "".join(f"{line}\n" for section in document.sections for line in _section(section))


def _section(section: Section) -> Iterator[str]:
    title = plain_title(section).partition(": ")[0]
    notices = [f"{one.subject}: {one.outcome}. {' '.join(one.reasons)}".rstrip() for one in verdicts_of(section)]
    notices = notices or [sentence(plain_title(section))]
    notices += [block.text for block in section.blocks if isinstance(block, Paragraph)]
    yield from (_command("notice", words, title=title) for words in notices)
    for finding in sorted(findings_of(section), key=lambda finding: -finding.level):
        if finding.level in _COMMANDS:
            yield _annotation(finding, title)


def _annotation(finding: Finding, title: str) -> str:
    place = finding.place
    properties = {"file": place.file, "line": place.line, "col": place.column}
    known = {name: value for name, value in properties.items() if value}
    return _command(_COMMANDS[finding.level], whole(finding), **known, title=f"{title}: {finding.rule}")


def whole(finding: Finding) -> str:
    """Return everything that a finding says, as one line without marks."""
    reference = f"[{finding.fingerprint}]" if finding.fingerprint else ""
    parts = (sentence(finding.message), finding.effect, finding.note, finding.fix, reference)
    return unmarked(" ".join(filter(None, parts)))


def _command(name: str, message: str, **properties: object) -> str:
    """Return a workflow command: `::error file=server.py,line=1::message`."""
    stated = ",".join(f"{key}={_escaped(str(value), ':,')}" for key, value in properties.items())
    return f"::{name} {stated}::{_escaped(unmarked(message))}"


def _escaped(text: str, more: str = "") -> str:
    """Return text without characters that end a command; `more` end a property."""
    return "".join(f"%{ord(char):02X}" if char in f"%\r\n{more}" else printable(char) for char in text)
