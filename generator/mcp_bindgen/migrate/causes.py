"""The findings of a comparison that explain changes of names in generated code, and the new names of classes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from mcp_bindgen.diff.finding import Comparison, Finding, Plane
from mcp_bindgen.diff.location import NEW, OLD, is_inside, steps, suffix
from mcp_bindgen.diff.match import Matches
from mcp_bindgen.diff.subjects import Subjects
from mcp_bindgen.ir.model import Protocol, Ref, Type, references

_OF_NAMES = (
    "definition-renamed",
    "definition-redefined",
    "definition-removed",
    "request-method-removed",
    "notification-removed",
)
_NO_CAUSES = frozenset({"definition-added", "envelope-inlined", "envelope-extracted"})


class Causes:
    """Index of the findings of a comparison by their subjects.

    Args:
        comparison: The comparison.
        matches: The definitions that both revisions have.
        names: Old name -> new name.
    """

    def __init__(self, comparison: Comparison, matches: Matches, names: Mapping[str, str]) -> None:
        self._names = names
        self._naming = Subjects(comparison.old, comparison.new, matches)
        self._places = places(comparison.old)
        self._subjects: defaultdict[str, list[Finding]] = defaultdict(list)
        self._definitions: defaultdict[str, list[Finding]] = defaultdict(list)
        for finding in comparison.findings:
            if finding.plane is not Plane.DOC and finding.rule not in _NO_CAUSES:
                self._subjects[finding.subject].append(finding)
                if finding.rule == "field-moved":
                    self._subjects[finding.old].append(finding)
                self._definitions[finding.definition_old].append(finding)

    def of_name(self, definition: str) -> Finding | None:
        """Return the finding that removed or renamed a definition."""
        found = {one.rule: one for one in reversed(self._definitions.get(definition, []))}
        for rule in _OF_NAMES:
            if rule in found:
                return found[rule]
        became = self._names.get(definition)
        return self._extracted(became) if became is not None else self._around(definition)

    def _extracted(self, name: str) -> Finding | None:
        """Return the finding that a definition was extracted from inline types."""
        return next((one for one in self._subjects.get(name, []) if one.rule == "ref-extracted"), None)

    def _around(self, definition: str) -> Finding | None:
        """Return the finding about the definition around an inline object."""
        if definition not in self._places:
            return None
        owner, way = self._places[definition]
        label = self._naming.of(OLD, owner)
        return self.of(*(label + "".join(way[:end]) for end in range(len(way), 0, -1))) or self.of_name(owner)

    def of_type(self, definition: str) -> Finding | None:
        """Return the finding about a definition as a whole."""
        found = self.of_name(definition)
        return (
            found if found is not None and found.rule == "definition-redefined" else self.at(self.subjects(definition))
        )

    def of_member(self, definition: str, wire: str, now: Type | None = None) -> Finding | None:
        """Return the finding about a member, by its new name if it has one; `now` is its new type."""
        found = self.at(self.members(definition, wire))
        if found is not None or now is None:
            return found
        return next(filter(None, map(self._extracted, references(now))), None)

    def members(self, definition: str, wire: str) -> list[str]:
        """Return the subjects under which a member may be reported."""
        return [label + suffix("field", wire) for label in self.subjects(definition)]

    def subjects(self, definition: str) -> Iterator[str]:
        """Yield the subjects under which a definition of the old revision may be reported."""
        new = self._names.get(definition)
        if definition in self._places:
            owner, rest = self._places[definition]
            yield "".join((self._naming.of(OLD, owner), *rest))
        yield self._naming.of(OLD, definition)
        if new is not None:
            yield from (self._naming.one(NEW, new), new)

    def at(self, subjects: Iterable[str]) -> Finding | None:
        """Return the finding about the first of `subjects` with one, or about a part of it."""
        wanted = list(subjects)
        return self.of(*wanted) or next(filter(None, map(self.within, wanted)), None)

    def of(self, *subjects: str) -> Finding | None:
        """Return the finding about the first of `subjects` with one."""
        return next((finding for subject in subjects for finding in self._subjects.get(subject, [])), None)

    def within(self, subject: str) -> Finding | None:
        """Return the first finding about a part of `subject`."""
        return next((findings[0] for other, findings in self._subjects.items() if is_inside(other, subject)), None)


def places(protocol: Protocol) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return inline object -> the definition that holds it, and the steps to it as subjects write them."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}

    def enter(type: Type, owner: str, way: tuple[str, ...]) -> None:
        if isinstance(type, Ref) and protocol.definitions[type.name].inline and type.name not in found:
            found[type.name] = owner, way
            enter(protocol.definitions[type.name].type, owner, way)
        for (kind, name), part in steps(type):
            enter(part, owner, (*way, suffix(kind, name)) if kind != "form" else way)

    for name, definition in protocol.definitions.items():
        if not definition.inline:
            enter(definition.type, name, ())
    return found


def new_names(old: Protocol, new: Protocol, matches: Matches) -> dict[str, str]:
    """Return old name -> new name of every definition that still exists.

    Renamed definitions are followed. An inline object has no name in the schema: its class keeps its name if it can,
    and else becomes the class in the same place.
    """
    taken = matches.new.keys() | matches.redefined
    same = {name: name for name in old.definitions if name in new.definitions and name not in taken}
    found = {**matches.new, **same}
    pending = [(old.definitions[a].type, new.definitions[b].type) for a, b in found.items()]
    while pending:
        for one, other in _below(*pending.pop()):
            if isinstance(one, Ref) and isinstance(other, Ref) and one.name not in found:
                became = other.name if new.object_of(other) is not None else None
                if old.definitions[one.name].inline and became is not None:
                    found[one.name] = became
                    pending.append((old.definitions[one.name].type, new.definitions[became].type))
            elif not isinstance(one, Ref) and not isinstance(other, Ref):
                pending.append((one, other))
    return found


def _below(old: Type, new: Type) -> list[tuple[Type, Type]]:
    """Return pairs of types in the same place of both."""
    theirs = dict(steps(new))
    return [(type, theirs[step]) for step, type in steps(old) if step in theirs and step[0] != "form"]
