"""Render a history as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..finding import Finding, Severity
from ..history import Event, History
from ..rules import RULES
from .record import as_json
from .terminal import BOLD, RED, YELLOW, Terminal
from .words import sentence

_MARKS = {Severity.BREAKING: ("breaks", RED), Severity.RISKY: ("risky", YELLOW)}

_ENDS = {"gone": "gone in", "opened": "without a name of its own since"}
"""How the last revision that names something is followed by another one."""

_ADDED = frozenset(rule for rule in RULES if "-added" in rule)
"""What is told by saying that something is there."""


def text(history: History, *, width: int = 80, colour: bool = False) -> str:
    """Return the history for a terminal: one paragraph for each revision in which something happened."""
    return "".join(f"{line.rstrip()}\n" for line in _Printer(history, width, colour).lines())


class _Printer(Terminal):
    def __init__(self, history: History, width: int, colour: bool) -> None:
        super().__init__(width, colour)
        self.history = history
        self.indent = max(len(revision) for revision in history.revisions) + 2

    def lines(self) -> Iterator[str]:
        """Return the whole history."""
        for line in self.folded(f"{self.history.name} ({self.history.kind}): {_summary(self.history)}", 0):
            yield self.style(line, BOLD)
        for event in self.history.events:
            yield ""
            yield from self.event(event)

    def event(self, event: Event) -> Iterator[str]:
        """Report what happened in one revision."""
        told = [finding for finding in event.findings if event.kind == "since" and finding.rule in _ADDED]
        more = [finding for finding in event.findings if finding not in told]
        said = [self.marked(line, told) for line in _said(event)]
        paragraphs = [*said, *(self.finding(finding) for finding in more)]
        first, *rest = [line for paragraph in paragraphs for line in paragraph]
        yield self.style(event.revision.ljust(self.indent), BOLD) + first[self.indent :]
        yield from rest

    def finding(self, finding: Finding) -> list[str]:
        """Return one change, with what may take the place of what is gone, and what to keep."""
        lines = self.marked(sentence(finding), [finding])
        is_told = "may take" in finding.hint or finding.rule == "field-opened"
        return lines + (self.folded(finding.hint, self.indent + 2) if is_told else [])

    def marked(self, words: str, findings: Sequence[Finding]) -> list[str]:
        """Return `words`, marked where a change breaks something or is risky."""
        mark, code = _MARKS.get(max((finding.severity for finding in findings), default=Severity.INFO), ("", ""))
        if not mark:
            return self.folded(words, self.indent)
        *lines, last = self.folded(f"{words} ({mark})", self.indent)
        return [*lines, last.removesuffix(f"({mark})") + self.style(f"({mark})", code)]


def _summary(history: History) -> str:
    """Say since when it is there, and until when."""
    had = list(history.names)
    last = history.revisions.index(had[-1])
    ends = [event.kind for event in history.events if event.kind in _ENDS][-1:]
    after = history.revisions[last + 1 :][:1]
    until = f", {_ENDS[ends[0]]} {after[0]}" if ends and after else ""
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
    """Return the history for programs."""
    return {**as_json(replace(history, events=())), "events": list(map(_event, history.events))}


def _event(event: Event) -> dict[str, Any]:
    said = as_json(replace(event, findings=()), or_null=("was", "words"))
    return {**said, "findings": list(map(_finding, event.findings))}


def _finding(finding: Finding) -> dict[str, Any]:
    said = as_json(finding, or_null=("old", "new"))
    names = ("rule", "subject", "plane", "oldClient", "newClient", "old", "new", "hint")
    return {**{name: said[name] for name in names}, "fingerprint": finding.fingerprint}
