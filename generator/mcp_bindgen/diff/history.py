"""Follow one thing through all revisions: since when it is there, what changed, and when it went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from mcp_bindgen.protocol import Protocol, build
from mcp_bindgen.protocol.model import Method
from mcp_bindgen.protocol.text import describe
from mcp_bindgen.spec import Store

from .engine import compare
from .finding import Comparison, Finding, Message
from .labels import Labels
from .location import suffix
from .match import Matches, match
from .reach import answers
from .selectors import Selector, find, is_about, locate, unknown
from .source import load

EventKind = Literal["since", "changed", "renamed", "gone"]
_NAMES = frozenset({"definition-renamed", "definition-added", "definition-removed"})
_WORDS = "description-changed"


@dataclass(frozen=True)
class Event:
    """Something that happened in a revision.

    Attributes:
        revision: The revision that has it so.
        kind: What happened.
        name: What it is called in this revision, or was in the one before when it is gone.
        was: What it was called before, when it was renamed.
        words: What it is, when it is new.
        findings: The changes that it consists of.
    """

    revision: str
    kind: EventKind
    name: str
    was: str = ""
    words: str = ""
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class History:
    """The events of one thing.

    Attributes:
        name: Its newest name.
        kind: `method`, `definition`, `member` or `error`.
        revisions: The revisions that were looked at, oldest first.
        names: Revision -> what it is called there; only the revisions that have it.
        events: What happened, oldest first.
    """

    name: str
    kind: str
    revisions: tuple[str, ...]
    names: dict[str, str]
    events: tuple[Event, ...]


def timeline(store: Store, files: Iterable[Path], semantics: Mapping[str, Any]) -> list[Protocol]:
    """Return all revisions of ours, oldest first, then those of schema files; `semantics` are the facts about these.

    Raises:
        BadInput: A file is not a usable schema.
    """
    ours = [build(store.effective(revision)) for revision in store.pins]
    newest = list(store.pins)[-1]
    return [*ours, *(load([newest, str(file)], store, semantics)[0][1] for file in files)]


def history(words: str, protocols: Sequence[Protocol]) -> History:
    """Return the history of what `words` name, followed through its renames from the newest revision that has it.

    Args:
        words: A method, a definition, a member such as `Tool.annotations`, or an error code or its name.
        protocols: The revisions, oldest first.

    Raises:
        BadInput: No revision has it.
    """
    found = [find(protocol, words) for protocol in protocols]
    newest = next((index for index in reversed(range(len(found))) if found[index] is not None), None)
    if newest is None:
        raise unknown(words, protocols)
    steps = [Step(old, new) for old, new in pairwise(protocols)]
    line: list[Selector | None] = [None] * len(protocols)
    line[newest] = found[newest]
    for index in range(newest, 0, -1):
        line[index - 1] = steps[index - 1].before(line[index])
    for index in range(newest, len(steps)):
        line[index + 1] = steps[index].after(line[index])
    selector = line[newest]
    assert selector is not None
    return History(
        name=str(selector),
        kind=selector.kind,
        revisions=tuple(protocol.revision for protocol in protocols),
        names={protocol.revision: str(one) for protocol, one in zip(protocols, line, strict=True) if one is not None},
        events=tuple(_events(line, protocols, steps)),
    )


def _events(line: Sequence[Selector | None], protocols: Sequence[Protocol], steps: Sequence[Step]) -> Iterator[Event]:
    first = line[0]
    if first is not None:
        yield Event(protocols[0].revision, "since", str(first), words=_described(protocols[0], first))
    for (old, new), step in zip(pairwise(line), steps, strict=True):
        revision, findings = step.new.revision, tuple(step.about(old, new))
        if old is None and new is not None:
            yield Event(revision, "since", str(new), words=_described(step.new, new), findings=findings)
        elif old is not None and new is None:
            yield Event(revision, "gone", str(old), findings=findings)
        elif old is not None and new is not None and str(old) != str(new):
            yield Event(revision, "renamed", str(new), was=str(old), findings=findings)
        elif new is not None and findings:
            yield Event(revision, "changed", str(new), findings=findings)


class Step:
    """From one revision to the next."""

    def __init__(self, old: Protocol, new: Protocol) -> None:
        self.old, self.new = old, new
        self.comparison: Comparison = compare(old, new)
        self.matches: Matches = match(old, new)
        self.labels = Labels(old, new, self.matches)
        self.findings = [finding for finding in self.comparison.findings if finding.rule != _WORDS]

    def before(self, selector: Selector | None) -> Selector | None:
        """Return what a selector of the new revision was in the old one."""
        return self._other(selector, self.old, back=True)

    def after(self, selector: Selector | None) -> Selector | None:
        """Return what a selector of the old revision is in the new one."""
        return self._other(selector, self.new, back=False)

    def _other(self, selector: Selector | None, other: Protocol, *, back: bool) -> Selector | None:
        if selector is None:
            return None
        if selector.kind in ("method", "error"):
            return find(other, selector.name)
        mapped = (self.matches.old if back else self.matches.new).get(selector.name)
        if mapped is None:
            inline = other.definitions.get(selector.name)
            mapped = selector.name if inline is not None and selector.name not in self.matches.redefined else None
        if mapped is None:
            return None
        if not selector.steps:
            return Selector("definition", mapped)
        moved = Selector("member", mapped, selector.steps)
        if locate(other, moved) is not None:
            return moved
        renamed = Selector("member", mapped, self._renamed(selector, back=back))
        return renamed if locate(other, renamed) is not None else None

    def _renamed(self, selector: Selector, *, back: bool) -> tuple[tuple[str, str], ...]:
        """Return the way to a member whose own name changed."""
        kind, wire = selector.steps[-1]
        places = self._places(None if back else selector, selector if back else None)
        stems = {place.removesuffix(suffix(kind, wire)) for place in places}
        for finding in self.findings:
            here, there = (finding.new, finding.old) if back else (finding.old, finding.new)
            known = finding.rule == "field-renamed" and here == wire
            if known and any(finding.subject == stem + suffix(kind, finding.new) for stem in stems):
                return (*selector.steps[:-1], (kind, there))
        return selector.steps

    def about(self, old: Selector | None, new: Selector | None) -> Iterator[Finding]:
        """Return the findings about a selector, or about something inside of it."""
        selector = new or old
        if selector is None:
            return
        if selector.kind == "method":
            wanted = (one for one in self.findings if one.group == selector.name)
            yield from (one for one in wanted if one.rule not in _NAMES)
        elif selector.kind == "error":
            yield from (one for one in self.findings if one.subject.endswith(f" {selector.name}"))
        else:
            places = self._places(old, new)
            messages = self._messages(old, new)
            for finding in self.findings:
                here = any(is_about(finding.subject, place) for place in places)
                if (here or finding.subject in messages) and not (finding.rule in _NAMES and selector.steps):
                    yield finding

    def _places(self, old: Selector | None, new: Selector | None) -> set[str]:
        """Return the subjects under which a definition or a member is reported."""
        found: set[str] = set()
        for selector, protocol in ((old, self.old), (new, self.new)):
            target = locate(protocol, selector) if selector is not None else None
            if target is not None:
                rest = "".join(suffix(*step) for step in target.steps)
                found |= {label + rest for label in self._labelled(target.owner, protocol is self.old)}
        return found

    def _labelled(self, owner: str, is_old: bool) -> Iterable[str]:
        names = self.matches.new if is_old else self.matches.old
        other = names.get(owner)
        if other is None:
            return {owner, self.labels.old(owner) if is_old else self.labels.new(owner)}
        pair = (owner, other) if is_old else (other, owner)
        return {self.labels.both(*pair), pair[1]}

    def _messages(self, old: Selector | None, new: Selector | None) -> set[str]:
        """Return the messages, as subjects, whose definition a selector is."""
        return {
            str(Message(method.name, method.kind, sender))
            for selector, protocol in ((old, self.old), (new, self.new))
            if selector is not None and not selector.steps
            for method in protocol.methods
            if method.definition == selector.name
            for sender in method.senders
        }


def _described(protocol: Protocol, selector: Selector) -> str:
    """Describe what a selector names, in a few words."""
    match selector.kind:
        case "method":
            return _method(next(method for method in protocol.methods if method.name == selector.name))
        case "error":
            error = next(error for error in protocol.errors if error.name == selector.name)
            return f"{error.code}, {error.doc}".rstrip(", ")
        case _:
            target = locate(protocol, selector)
            assert target is not None
            words = describe(target.type)
            optional = target.field is not None and not target.field.required
            return f"{words}, optional" if optional else words


def _method(method: Method) -> str:
    senders = "either side" if len(method.senders) == 2 else f"the {method.senders[0]}"
    params = describe(method.params) if method.params is not None else "no params"
    result = f", answered by {' or '.join(map(describe, answers(method)))}" if answers(method) else ""
    carrier = "" if method.carrier == "message" else f", {method.carrier}"
    return f"{method.kind} of {senders}{carrier}, {params}{result}"
