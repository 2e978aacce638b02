"""History of a method, definition, member or error code through all revisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Literal

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import Method
from mcp_bindgen.ir.text import describe
from mcp_bindgen.spec import Correction, Diagnostic

from .finding import Finding, OrNull
from .findings import Gates, compare
from .location import NEW, OLD, is_inside, only, suffix
from .match import match, renamed_methods
from .reach import sent
from .selectors import Selector, find, locate, unknown
from .subjects import Subjects

EventKind = Literal["since", "changed", "renamed", "opened", "gone"]
Selectors = tuple[Selector | None, Selector | None]
"""Name of a subject in the old and in the new revision."""

_NAMES = frozenset({"definition-renamed", "definition-added", "definition-removed"})
_WORDS = "description-changed"


@dataclass(frozen=True)
class Event:
    """Event in a revision.

    Attributes:
        revision: First revision with the new state.
        kind: Kind of event; a member is `opened` if the object accepts it without naming it any more.
        name: Name in this revision, or in the previous revision after a removal.
        was: Previous name after a renaming.
        description: Short description of an addition.
        findings: Changes of the event.
    """

    revision: str
    kind: EventKind
    name: str
    was: OrNull = ""
    description: OrNull = ""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class History:
    """History of one subject.

    Attributes:
        name: Newest name.
        kind: `method`, `definition`, `member` or `error`.
        revisions: Examined revisions, oldest first.
        names: Revision -> name there, for the revisions with the subject.
        events: Events, oldest first.
        corrections: Known errors that were corrected in external files.
        diagnostics: How broken rules of external files were handled.
    """

    name: str
    kind: str
    revisions: tuple[str, ...]
    names: dict[str, str]
    events: tuple[Event, ...]
    corrections: tuple[Correction, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()


def history(
    subject: str,
    protocols: Sequence[Protocol],
    steps: Sequence[Step] | None = None,
    gates: Gates = MappingProxyType({}),
) -> History:
    """Return the history of a subject, followed through its renames from the newest revision that has it.

    Args:
        subject: A method, a definition, a member such as `Tool.annotations`, or an error code or its name.
        protocols: The revisions, oldest first.
        steps: Comparisons of each revision with the next one, for callers that need several histories.
        gates: As for `findings.compare`.

    Raises:
        BadInput: No revision has the subject.
    """
    found = [find(protocol, subject) for protocol in protocols]
    newest = next((index for index in reversed(range(len(found))) if found[index] is not None), None)
    if newest is None:
        raise unknown(subject, protocols)
    steps = steps or [Step(old, new, gates) for old, new in pairwise(protocols)]
    line: list[Selector | None] = [None] * len(protocols)
    line[newest] = found[newest]
    for index in range(newest, 0, -1):
        line[index - 1] = steps[index - 1].other(line[index], NEW)
    for index in range(newest, len(steps)):
        line[index + 1] = steps[index].other(line[index], OLD)
    selector = line[newest]
    assert selector is not None
    return History(
        name=str(selector),
        kind=selector.kind,
        revisions=tuple(protocol.revision for protocol in protocols),
        names={protocol.revision: str(one) for protocol, one in zip(protocols, line, strict=True) if one is not None},
        events=tuple(_events(line, protocols, steps)),
        corrections=tuple(correction for protocol in protocols for correction in protocol.corrections),
        diagnostics=tuple(diagnostic for protocol in protocols for diagnostic in protocol.diagnostics),
    )


def _events(line: Sequence[Selector | None], protocols: Sequence[Protocol], steps: Sequence[Step]) -> Iterator[Event]:
    if line[0] is not None:
        yield Event(protocols[0].revision, "since", str(line[0]), description=_described(protocols[0], line[0]))
    for (old, new), protocol, step in zip(pairwise(line), protocols[1:], steps, strict=True):
        revision, findings = protocol.revision, tuple(step.about((old, new)))
        if new is None:
            if old is not None:
                is_open = any(finding.rule == "field-opened" for finding in findings)
                yield Event(revision, "opened" if is_open else "gone", str(old), findings=findings)
        elif old is None:
            yield Event(revision, "since", str(new), description=_described(protocol, new), findings=findings)
        elif str(old) != str(new):
            yield Event(revision, "renamed", str(new), was=str(old), findings=findings)
        elif findings:
            yield Event(revision, "changed", str(new), findings=findings)


class Step:
    """Comparison of a revision with the next revision."""

    def __init__(self, old: Protocol, new: Protocol, gates: Gates = MappingProxyType({})) -> None:
        self.protocols = old, new
        self.matches = match(old, new)
        self.subjects = Subjects(old, new, self.matches)
        findings = compare(old, new, evidence=False, gates=gates).findings
        self.findings = [finding for finding in findings if finding.rule != _WORDS]
        self._names = self.matches.new, self.matches.old
        renamed = renamed_methods(old, new, self.matches)
        self._methods = renamed, {now: was for was, now in renamed.items()}

    def other(self, selector: Selector | None, side: int) -> Selector | None:
        """Return the selector of the same subject on the other side."""
        there = self.protocols[1 - side]
        if selector is None:
            return None
        if selector.kind == "error":
            return find(there, selector.name)
        if selector.kind == "method":
            return find(there, self._methods[side].get(selector.name, selector.name))
        inline = "" if selector.name in self.matches.redefined else selector.name
        name = self._names[side].get(selector.name, inline)
        if name not in there.definitions:
            return None
        if not selector.steps:
            return Selector("definition", name)
        ways = (selector.steps, self._renamed(selector, side))
        moved = (Selector("member", name, steps) for steps in ways)
        return next((one for one in moved if locate(there, one) is not None), None)

    def _renamed(self, selector: Selector, side: int) -> tuple[tuple[str, str], ...]:
        """Return the path to a renamed member."""
        kind, wire = selector.steps[-1]
        stems = {place.removesuffix(suffix(kind, wire)) for place in self._places(only(side, selector, None))}
        for finding in self.findings:
            names = finding.old, finding.new
            known = finding.rule == "field-renamed" and names[side] == wire
            if known and any(finding.subject == stem + suffix(kind, finding.new) for stem in stems):
                return (*selector.steps[:-1], (kind, names[1 - side]))
        return selector.steps

    def about(self, selectors: Selectors) -> Iterator[Finding]:
        """Return the findings about a selector, by its name on either side, or about a part of it."""
        selector = selectors[NEW] or selectors[OLD]
        if selector is None:
            return
        if selector.kind == "method":
            names = {one.name for one in selectors if one is not None}
            wanted = (one for one in self.findings if one.group in names)
            yield from (one for one in wanted if one.rule not in _NAMES)
        elif selector.kind == "error":
            yield from (one for one in self.findings if one.subject.endswith(f" {selector.name}"))
        else:
            places, messages = self._places(selectors), self._messages(selectors)
            for finding in self.findings:
                subject = finding.subject
                here = subject in places | messages or any(is_inside(subject, place) for place in places)
                here = here or (finding.rule == "field-moved" and finding.old in places)
                if here and not (finding.rule in _NAMES and selector.steps):
                    yield finding

    def _places(self, selectors: Selectors) -> set[str]:
        """Return the subjects under which a definition or a member is reported."""
        found: set[str] = set()
        for side, selector in enumerate(selectors):
            target = locate(self.protocols[side], selector) if selector is not None else None
            if target is not None:
                rest = "".join(suffix(*step) for step in target.steps)
                newest = target.owner if side == NEW else self.matches.new.get(target.owner, target.owner)
                found |= {label + rest for label in (self.subjects.of(side, target.owner), newest)}
        return found

    def _messages(self, selectors: Selectors) -> set[str]:
        """Return the messages, as subjects, with a selector as their definition."""
        return {
            str(message)
            for protocol, selector in zip(self.protocols, selectors, strict=True)
            if selector is not None and not selector.steps
            for message, method in sent(protocol).items()
            if method.definition == selector.name
        }


def _described(protocol: Protocol, selector: Selector) -> str:
    """Return a short description of a selected subject."""
    match selector.kind:
        case "method":
            return _method(next(method for method in protocol.methods if method.name == selector.name))
        case "error":
            error = next(error for error in protocol.errors if error.name == selector.name)
            return f"{error.code}, {error.doc}".rstrip(", ")
        case _:
            target = locate(protocol, selector)
            assert target is not None
            text = describe(target.type)
            optional = target.field is not None and not target.field.required
            return f"{text}, optional" if optional else text


def _method(method: Method) -> str:
    senders = "either side" if len(method.senders) == 2 else f"the {method.senders[0]}"
    params = describe(method.params) if method.params is not None else "no params"
    result = f", answered by {' or '.join(map(describe, method.answers))}" if method.answers else ""
    carrier = "" if method.carrier == "message" else f", {method.carrier}"
    return f"{method.kind} of {senders}{carrier}, {params}{result}"
