"""HTML page of `diff`: findings with filters, and all definitions of both revisions side by side."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from urllib.parse import quote

from markupsafe import Markup

from mcp_bindgen.diff.commits import Walked
from mcp_bindgen.diff.finding import Comparison, Finding, Impact, Message, Plane, Severity
from mcp_bindgen.diff.grouping import grouped
from mcp_bindgen.diff.location import NEW, SIDES
from mcp_bindgen.spec.errors import printable

from .comparison import HEADINGS, OUTCOMES, heading_of, place_of, reported, walk_summary, words_note
from .document import prose
from .html import marked, page
from .side_by_side import Line, Links, Pair, pairs

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


IMPACTS = {
    Impact.BREAKS: ("breaks", "the receiver rejects what the sender may say"),
    Impact.RISKY: ("risky", "accepted, but perhaps not understood as it was meant"),
    Impact.IGNORED: ("ignored", "the receiver does not know it and may ignore it"),
    Impact.SAFE: ("safe", "both sides understand each other as before"),
    Impact.NONE: ("not visible", "nothing of it is on the wire"),
}
SEVERITIES = {severity: severity.word for severity in reversed(Severity)}
PLANES = {Plane.WIRE: "on the wire", Plane.SOURCE: "in generated code", Plane.DOC: "in documentation"}


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
        impacts=IMPACTS,
        severities=SEVERITIES,
        counts=_severities,
        few=_FEW,
        planes=PLANES,
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
