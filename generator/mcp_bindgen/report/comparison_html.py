"""HTML page of `diff`: findings with filters, and all definitions of both revisions side by side."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, partial
from urllib.parse import quote

from markupsafe import Markup, escape

from mcp_bindgen.diff.finding import Comparison, Finding, Impact, Message, Plane, Severity, Walked
from mcp_bindgen.diff.grouping import grouped
from mcp_bindgen.diff.location import NEW, OLD, SIDES
from mcp_bindgen.ir.model import AnyValue, Const, Definition, Object, Ref, Type, Union, map_parts
from mcp_bindgen.ir.text import describe
from mcp_bindgen.spec.errors import printable

from .comparison import HEADINGS, OUTCOMES, WORDS, heading_of, place_of, reported, walk_summary, words_note
from .document import prose
from .html import marked, page

_MARK = "\0"
"""Put around the names of definitions within a description: split there, the odd parts are names."""

Links = Mapping[str, str]
"""Name of a definition -> the anchor where the page shows it."""


@dataclass(frozen=True)
class Line:
    """A line of a definition in the old and in the new revision; `None` where it does not exist."""

    old: Markup | None
    new: Markup | None

    @property
    def same(self) -> bool:
        """True if both revisions say the same."""
        return self.old is not None and self.new is not None and self.old.striptags() == self.new.striptags()


@dataclass(frozen=True)
class Pair:
    """A definition in the old and in the new revision; `None` where it does not exist."""

    sides: tuple[Definition | None, Definition | None]

    @property
    def newest(self) -> Definition:
        """The definition itself, in the newest revision that has it."""
        newest = self.sides[NEW] or self.sides[OLD]
        assert newest is not None, "a pair has at least one side"
        return newest

    def lines(self, links: Sequence[Links]) -> list[Line]:
        """Return the lines of both sides; `links` has one mapping for each revision."""
        old, new = (list(_parts(one.type, known)) if one else [] for one, known in zip(self.sides, links, strict=True))
        found: list[Line] = []
        matcher = SequenceMatcher(None, [key for key, _ in old], [key for key, _ in new], autojunk=False)
        for kind, start, end, new_start, new_end in matcher.get_opcodes():
            was, now = [text for _, text in old[start:end]], [text for _, text in new[new_start:new_end]]
            if kind == "equal":
                found += map(Line, was, now)
            else:
                found += [Line(text, None) for text in was] + [Line(None, text) for text in now]
        return found


def pairs(comparison: Comparison) -> list[Pair]:
    """Return all definitions of both revisions in alphabetical order, each of them once.

    A renamed definition is paired with its new name, as the findings state it.
    """
    old, new = comparison.old.definitions, comparison.new.definitions
    renamed = {
        finding.definition_old: finding.definition_new
        for finding in comparison.findings
        if finding.rule == "definition-renamed" and finding.definition_old in old and finding.definition_new in new
    }
    taken = set(renamed.values())
    became = {name: name for name in old if name in new and name not in taken} | renamed
    found = [Pair((definition, new.get(became.get(name, "")))) for name, definition in old.items()]
    taken |= set(became.values())
    found += [Pair((None, definition)) for name, definition in new.items() if name not in taken]
    return sorted(found, key=lambda pair: pair.newest.name)


def _parts(type: Type, links: Links) -> Iterator[tuple[str, Markup]]:
    """Return the lines of one definition, each with the key by which it finds its counterpart."""
    match type:
        case Object(fields, extra):
            for field in fields:
                name = field.wire if field.wire.isidentifier() else json.dumps(field.wire, ensure_ascii=False)
                optional = "" if field.required else "?"
                text = Markup("<b>{}</b>{}: {}").format(name, optional, _linked(field.type, links))
                yield f"field {field.wire}", text
            if extra is None:
                yield "extra", Markup("no other members")
            elif not isinstance(extra, AnyValue):
                yield "extra", Markup("any other member: {}").format(_linked(extra, links))
            elif not fields:
                yield "extra", Markup("object with any members")
        case Union(members):
            for member in members:
                yield f"member {describe(member)}", Markup("| {}").format(_linked(member, links))
        case Const(values):
            for value in values:
                yield f"value {value!r}", Markup("| {}").format(json.dumps(value, ensure_ascii=False))
        case _:
            yield "type", _linked(type, links)


def _linked(type: Type, links: Links) -> Markup:
    """Return `type` in words, with links for the definitions that it names."""
    linked = Markup()
    for index, part in enumerate(describe(_marked(type), formats=True).split(_MARK)):
        target = links.get(part) if index % 2 else None
        linked += escape(part) if target is None else Markup('<a href="#{}">{}</a>').format(target, part)
    return linked


def _marked(type: Type) -> Type:
    """Return `type` with the names of definitions marked."""
    if isinstance(type, Ref):
        return Ref(f"{_MARK}{type.name}{_MARK}")
    return map_parts(type, _marked)


_FEW = 20
"""Findings and definitions are folded if they are more; the first part of the protocol never is."""


@dataclass(frozen=True)
class Panel:
    """A definition on the page.

    Attributes:
        anchor: Where it is.
        pair: The definition in both revisions.
        status: `new`, `gone`, `renamed`, `changed` or `unchanged`.
        lines: Its lines, old and new.
        methods: Methods with this message definition.
        findings: Findings about it.
    """

    anchor: str
    pair: Pair
    status: str
    lines: tuple[Line, ...]
    methods: tuple[str, ...]
    findings: tuple[Entry, ...]


@dataclass(frozen=True)
class Entry:
    """A finding on the page.

    Attributes:
        anchor: Where it is: its fingerprint.
        finding: The finding.
        about: Messages for the filters: the reached ones, else the messages of the method that lists it.
        panels: Names and anchors of the definitions that it is about.
    """

    anchor: str
    finding: Finding
    about: tuple[Message, ...]
    panels: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Group:
    """Findings about one part of the protocol, the worst first."""

    anchor: str
    name: str
    entries: tuple[Entry, ...]


class Step:
    """Layout of a comparison; `prefix` starts all anchors except the anchors of findings."""

    def __init__(self, comparison: Comparison, prefix: str, taken: set[str]) -> None:
        """Lay out `comparison`; `taken` are the anchors of findings that the page has already, and grows."""
        self.comparison = comparison
        self.prefix = prefix
        self.anchor = f"{prefix}findings"
        self._messages = {
            method.name: tuple(Message.of(method, sender) for sender in method.senders)
            for method in (*comparison.old.methods, *comparison.new.methods)
        }
        self._pairs = pairs(comparison)
        self._links: list[Links] = [
            {one.name: self._home(pair) for pair in self._pairs if (one := pair.sides[side])} for side in SIDES
        ]
        self.entries = tuple(self._entry(finding, taken) for finding in grouped(comparison.findings))

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The findings by part of the protocol: the lifecycle first, and changes that are not on the wire last."""
        found: dict[str, list[Entry]] = {heading: [] for heading in HEADINGS}
        for entry in self.entries:
            found[heading_of(entry.finding)].append(entry)
        return tuple(Group(self._anchor("group", name), name, tuple(one)) for name, one in found.items() if one)

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """All definitions, in alphabetical order."""
        about: defaultdict[str, list[Entry]] = defaultdict(list)
        for entry in self.entries:
            for _, anchor in entry.panels:
                about[anchor].append(entry)
        messages: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for method in (*self.comparison.old.methods, *self.comparison.new.methods):
            messages[method.definition][method.name] = None
        found: list[Panel] = []
        for pair in self._pairs:
            anchor, lines = self._home(pair), tuple(pair.lines(self._links))
            methods = tuple(messages[pair.newest.name])
            found.append(Panel(anchor, pair, _status(pair, lines), lines, methods, tuple(about[anchor])))
        return tuple(found)

    @property
    def changed(self) -> list[Panel]:
        """The definitions with differences or findings."""
        return [panel for panel in self.panels if panel.status != "unchanged" or panel.findings]

    @property
    def unchanged(self) -> list[Panel]:
        """The unchanged definitions without findings."""
        return [panel for panel in self.panels if panel.status == "unchanged" and not panel.findings]

    @property
    def planes(self) -> list[tuple[Plane, int]]:
        """How many findings there are on each plane."""
        count = Counter(entry.finding.plane for entry in self.entries)
        return [(plane, count[plane]) for plane in Plane]

    def _entry(self, finding: Finding, taken: set[str]) -> Entry:
        anchor, count = finding.fingerprint, 1
        while anchor in taken:
            count += 1
            anchor = f"{finding.fingerprint}-{count}"
        taken.add(anchor)
        ends = [
            pair
            for one in finding.places or (finding,)
            for pair in zip(self._links, (one.definition_old, one.definition_new), strict=True)
        ]
        named = {links[name]: name for links, name in ends if name in links}
        panels = tuple((name, at) for at, name in named.items())
        about = finding.reaches or self._messages.get(finding.group, ())
        return Entry(anchor, finding, about, panels)

    def _home(self, pair: Pair) -> str:
        return self._anchor("definition" if pair.sides[NEW] else "definition.old", pair.newest.name)

    def _anchor(self, kind: str, name: str) -> str:
        return f"{self.prefix}{kind}.{quote(name, safe='/')}"


def _status(pair: Pair, lines: tuple[Line, ...]) -> str:
    old, new = pair.sides
    if old is None or new is None:
        return "new" if old is None else "gone"
    if old.name != new.name:
        return "renamed"
    return "unchanged" if all(line.same for line in lines) else "changed"


def _severities(entries: Iterable[Entry]) -> list[tuple[Severity, int]]:
    """Return how many findings are how severe, the worst first."""
    count = Counter(entry.finding.severity for entry in entries)
    return [(severity, count[severity]) for severity in reversed(Severity) if count[severity]]


def comparison_html(comparisons: Sequence[Comparison], walked: Walked | None = None) -> str:
    """Return the page about comparisons.

    Args:
        comparisons: One comparison, or the steps of a chain in order.
        walked: The range of commits, if the comparisons are its steps.
    """
    comparisons = reported(comparisons, walked)
    taken: set[str] = set()
    steps = [
        Step(comparison, f"{number}." if len(comparisons) > 1 else "", taken)
        for number, comparison in enumerate(comparisons, start=1)
    ]
    names = {message.method for step in steps for entry in step.entries for message in entry.about}
    methods = {name: number for number, name in enumerate(sorted(names))}
    return page(
        "report.html.jinja",
        first=comparisons[0].old.revision,
        last=comparisons[-1].new.revision,
        steps=steps,
        methods=methods,
        tokens=partial(_tokens, methods=methods),
        walked=walked,
        walk_summary=walk_summary,
        printable=_printable,
        outcomes={outcome: words.capitalize() for outcome, words in OUTCOMES.items()},
        impacts={Impact[name.upper()]: words for name, words in WORDS["impacts"].items()},
        severities={severity: severity.word for severity in reversed(Severity)},
        counts=_severities,
        few=_FEW,
        planes=WORDS["planes"],
        words_note=words_note,
        prose=_prose,
        place=place_of,
    )


def _tokens(messages: Iterable[Message], methods: dict[str, int]) -> str:
    """Return sender and method of each message for the filters, in short: `c3 s14`."""
    return " ".join(sorted({f"{message.sender[0]}{methods[message.method]}" for message in messages}))


def _printable(text: str) -> str:
    return printable(" ".join(text.split()))


def _prose(text: str) -> Markup:
    return marked(prose(text))
