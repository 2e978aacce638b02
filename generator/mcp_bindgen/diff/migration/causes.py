"""Which finding of a comparison explains what happened to a name in generated code."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from mcp_bindgen.protocol.model import Protocol, Ref, Type, references

from ..finding import Comparison, Finding, Plane
from ..labels import Labels
from ..location import NEW, OLD, is_inside, steps, suffix
from ..match import Matches

_OF_NAMES = (
    "definition-renamed",
    "definition-redefined",
    "definition-removed",
    "request-method-removed",
    "notification-removed",
)
_NO_CAUSES = frozenset({"definition-added", "envelope-inlined", "envelope-extracted"})


class Causes:
    """The findings of a comparison, by what they are about.

    Args:
        comparison: The comparison.
        matches: The definitions that both revisions have.
        names: Old name -> new name.
    """

    def __init__(self, comparison: Comparison, matches: Matches, names: Mapping[str, str]) -> None:
        self._names = names
        self._labels = Labels(comparison.old, comparison.new, matches)
        self._places = places(comparison.old)
        self._subjects: defaultdict[str, list[Finding]] = defaultdict(list)
        self._definitions: defaultdict[str, list[Finding]] = defaultdict(list)
        for finding in comparison.findings:
            if finding.plane is not Plane.DOC and finding.rule not in _NO_CAUSES:
                self._subjects[finding.subject].append(finding)
                self._definitions[finding.definition_old].append(finding)

    def of_name(self, definition: str) -> Finding | None:
        """Say why a definition is not there any more, or not under this name."""
        found = {one.rule: one for one in reversed(self._definitions.get(definition, []))}
        for rule in _OF_NAMES:
            if rule in found:
                return found[rule]
        became = self._names.get(definition)
        return self._extracted(became) if became is not None else self._around(definition)

    def _extracted(self, name: str) -> Finding | None:
        """The finding that a definition was made of inline types."""
        return next((one for one in self._subjects.get(name, []) if one.rule == "ref-extracted"), None)

    def _around(self, definition: str) -> Finding | None:
        """Say why an inline object is gone: something around it is."""
        if definition not in self._places:
            return None
        owner, way = self._places[definition]
        label = self._labels.of(OLD, owner)
        return self.of(*(label + "".join(way[:end]) for end in range(len(way), 0, -1))) or self.of_name(owner)

    def of_type(self, definition: str) -> Finding | None:
        """Return what changed in a definition as a whole."""
        found = self.of_name(definition)
        return found if found is not None and found.rule == "definition-redefined" else self.at(self.labels(definition))

    def of_member(self, definition: str, wire: str, now: Type | None = None) -> Finding | None:
        """Return what changed in a member, by its new name if it has one; `now` is its new type."""
        found = self.at(self.members(definition, wire))
        if found is not None or now is None:
            return found
        return next(filter(None, map(self._extracted, references(now))), None)

    def members(self, definition: str, wire: str) -> list[str]:
        """The subjects under which a member may be reported."""
        return [label + suffix("field", wire) for label in self.labels(definition)]

    def labels(self, definition: str) -> Iterator[str]:
        """The subjects under which a definition of the old revision may be reported."""
        new = self._names.get(definition)
        if definition in self._places:
            owner, rest = self._places[definition]
            yield "".join((self._labels.of(OLD, owner), *rest))
        yield self._labels.of(OLD, definition)
        if new is not None:
            yield from (self._labels.one(NEW, new), new)

    def at(self, subjects: Iterable[str]) -> Finding | None:
        """The finding about the first of `subjects` that has one, or else about something inside of it."""
        wanted = list(subjects)
        return self.of(*wanted) or next(filter(None, map(self.within, wanted)), None)

    def of(self, *subjects: str) -> Finding | None:
        """The finding about the first of `subjects` that has one."""
        return next((finding for subject in subjects for finding in self._subjects.get(subject, [])), None)

    def within(self, subject: str) -> Finding | None:
        """The first finding about something inside of `subject`."""
        return next((findings[0] for other, findings in self._subjects.items() if is_inside(other, subject)), None)


def places(protocol: Protocol) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Inline object -> the definition that it stands in, and the steps to it in there, as subjects say them."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}

    def enter(type: Type, owner: str, way: tuple[str, ...]) -> None:
        if isinstance(type, Ref) and protocol.definitions[type.name].hoisted and type.name not in found:
            found[type.name] = owner, way
            enter(protocol.definitions[type.name].type, owner, way)
        for (kind, name), part in steps(type):
            enter(part, owner, (*way, suffix(kind, name)) if kind != "form" else way)

    for name, definition in protocol.definitions.items():
        if not definition.hoisted:
            enter(definition.type, name, ())
    return found
