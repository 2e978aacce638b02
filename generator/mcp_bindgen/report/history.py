"""Report of `history`: the events of one thing, as a document and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mcp_bindgen.diff.finding import RULES, Finding, Severity
from mcp_bindgen.diff.history import Event, History

from .comparison import sentence
from .document import Bullets, Document, Section, code, literal, prose, strong
from .record import as_json

_MARKS = {Severity.BREAKING: "breaks", Severity.RISKY: "risky"}

_ENDS = {"gone": "gone in", "opened": "without a name of its own since"}
"""Events after which the newer revisions have no such name."""

_ADDED = frozenset(rule for rule in RULES if "-added" in rule)
"""Rules that only repeat that something is new."""


def document(histories: Sequence[tuple[str | None, History]]) -> Document:
    """Return the report of histories, each with the id of its extension, or `None` for core."""
    return Document("history", [_section(id, history) for id, history in histories])


def record(histories: Sequence[tuple[str | None, History]]) -> dict[str, Any]:
    """Return histories as JSON: the first one, with the rest under `extensions`."""
    first, *others = [{**_history(history), "origin": id} for id, history in histories]
    return {**first, "extensions": others}


def _section(id: str | None, history: History) -> Section:
    where = f"In the extension {code(id)}: " if id is not None else ""
    title = f"{where}{literal(history.name)} ({history.kind}): {_summary(history)}"
    return Section(title, [Section(literal(event.revision), [Bullets(_lines(event))]) for event in history.events])


def _lines(event: Event) -> list[str]:
    implied = [finding for finding in event.findings if event.kind == "since" and finding.rule in _ADDED]
    others = [finding for finding in event.findings if finding not in implied]
    return [
        *(_marked(line, implied) for line in _event_words(event)),
        *(_marked(sentence(finding), [finding]) + _hint(finding) for finding in others),
    ]


def _marked(words: str, findings: Sequence[Finding]) -> str:
    """Return words, marked if a finding breaks something or is risky."""
    mark = _MARKS.get(max((finding.severity for finding in findings), default=Severity.INFO))
    return f"{words} {strong(f'({mark})')}" if mark else words


def _hint(finding: Finding) -> str:
    """Return the hint of a finding that names a replacement, or that asks to keep the name."""
    is_shown = "may take" in finding.hint or finding.rule == "field-opened"
    return f". {prose(finding.hint)}" if is_shown else ""


def _summary(history: History) -> str:
    """Return the first revision, the end and the earlier names."""
    had = list(history.names)
    last = history.revisions.index(had[-1])
    ends = [event.kind for event in history.events if event.kind in _ENDS][-1:]
    after = history.revisions[last + 1 :][:1]
    until = f", {_ENDS[ends[0]]} {after[0]}" if ends and after else ""
    names = list(dict.fromkeys(history.names.values()))
    earlier = f", once {' and '.join(names[:-1])}" if len(names) > 1 else ""
    return literal(f"since {had[0]}{until}{earlier}")


def _event_words(event: Event) -> Iterator[str]:
    match event.kind:
        case "since":
            yield literal(f"new: {event.description}")
        case "renamed":
            yield literal(f"{event.was} is {event.name} now")
        case "gone" if not event.findings:
            yield literal(f"{event.name} is gone")
        case _:
            return


def _history(history: History) -> dict[str, Any]:
    found: dict[str, Any] = as_json(history)
    for event in found["events"]:
        event["findings"] = list(map(_finding, event["findings"]))
    return found


def _finding(finding: dict[str, Any]) -> dict[str, Any]:
    names = ("rule", "subject", "plane", "oldClient", "newClient", "old", "new", "hint", "fingerprint")
    empty = {name: None for name in ("old", "new") if not finding[name]}
    return {name: finding[name] for name in names} | empty
