"""A history as text and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from ..finding import Finding, Severity
from ..history import Event, History
from ..rules import RULES
from .words import IMPACTS, sentence

_BOLD, _DIM = "1", "2"
_MARKS = {Severity.BREAKING: ("breaks", "31"), Severity.RISKY: ("risky", "33")}

_ADDED = frozenset(rule for rule in RULES if "-added" in rule)
"""What is told by saying that something is there."""


def text(history: History, *, width: int = 80, colour: bool = False) -> str:
    """The history for a terminal: one paragraph for each revision in which something happened."""
    return "".join(f"{line.rstrip()}\n" for line in _Printer(history, max(width, 40), colour).lines())


class _Printer:
    def __init__(self, history: History, width: int, colour: bool) -> None:
        self.history, self.width, self.colour = history, width, colour
        self.indent = max(len(revision) for revision in history.revisions) + 2

    def style(self, words: str, code: str) -> str:
        return f"\x1b[{code}m{words}\x1b[0m" if self.colour else words

    def folded(self, words: str, indent: int) -> list[str]:
        printable = "".join(char if char.isprintable() else repr(char)[1:-1] for char in words)
        lines = textwrap.wrap(printable, self.width - indent, break_on_hyphens=False)
        return [" " * indent + line for line in lines]

    def lines(self) -> Iterator[str]:
        """The whole history."""
        for line in self.folded(f"{self.history.name} ({self.history.kind}): {_summary(self.history)}", 0):
            yield self.style(line, _BOLD)
        for event in self.history.events:
            yield ""
            yield from self.event(event)

    def event(self, event: Event) -> Iterator[str]:
        """What happened in one revision."""
        told = [finding for finding in event.findings if event.kind == "since" and finding.rule in _ADDED]
        more = [finding for finding in event.findings if finding not in told]
        said = [self.marked(line, told) for line in _said(event)]
        paragraphs = [*said, *(self.finding(finding) for finding in more)]
        first, *rest = [line for paragraph in paragraphs for line in paragraph]
        yield self.style(event.revision.ljust(self.indent), _BOLD) + first[self.indent :]
        yield from rest

    def finding(self, finding: Finding) -> list[str]:
        """One change, with what may take the place of what is gone."""
        lines = self.marked(sentence(finding), [finding])
        return lines + (self.folded(finding.hint, self.indent + 2) if "may take" in finding.hint else [])

    def marked(self, words: str, findings: Sequence[Finding]) -> list[str]:
        """`words`, marked where a change breaks something or is risky."""
        mark, code = _MARKS.get(max((finding.severity for finding in findings), default=Severity.INFO), ("", ""))
        if not mark:
            return self.folded(words, self.indent)
        *lines, last = self.folded(f"{words} ({mark})", self.indent)
        return [*lines, last.removesuffix(f"({mark})") + self.style(f"({mark})", code)]


def _summary(history: History) -> str:
    """Since when, and until when."""
    had = list(history.names)
    last = history.revisions.index(had[-1])
    until = "" if last == len(history.revisions) - 1 else f", gone in {history.revisions[last + 1]}"
    names = list(dict.fromkeys(history.names.values()))
    called = f", once {' and '.join(names[:-1])}" if len(names) > 1 else ""
    return f"since {had[0]}{until}{called}"


def _said(event: Event) -> Iterator[str]:
    match event.kind:
        case "since":
            yield f"there: {event.words}"
        case "renamed":
            yield f"{event.was} is {event.name} now"
        case "gone" if not event.findings:
            yield f"{event.name} is gone"
        case _:
            return


def record(history: History) -> dict[str, Any]:
    """The history for programs."""
    return {
        "name": history.name,
        "kind": history.kind,
        "revisions": list(history.revisions),
        "names": history.names,
        "events": [
            {
                "revision": event.revision,
                "kind": event.kind,
                "name": event.name,
                "was": event.was or None,
                "words": event.words or None,
                "findings": [_finding(finding) for finding in event.findings],
            }
            for event in history.events
        ],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "selector": finding.subject,
        "plane": finding.plane.value,
        "oldClient": IMPACTS[finding.old_client],
        "newClient": IMPACTS[finding.new_client],
        "old": finding.old or None,
        "new": finding.new or None,
        "hint": finding.hint,
        "fingerprint": finding.fingerprint,
    }
