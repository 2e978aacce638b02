"""Compare inline types with the definitions that were made of them, and the other way round."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from mcp_bindgen.protocol.model import Type

from .location import Change, Location, Unit
from .sides import Sides

_NAMED = 4
"""How many places a finding names."""

_Place = tuple[Type, Type, Location]


class Inlining:
    """Collects the places where one revision has a definition of its own and the other an inline type.

    Equal inline types are compared with the definition once. What most places had is compared under the name of the
    definition; where a place had something else, that goes by the place.

    Args:
        sides: Both revisions.
    """

    def __init__(self, sides: Sides) -> None:
        self._sides = sides
        self._open: dict[tuple[str, str], dict[Hashable, list[_Place]]] = {}
        self._units: dict[tuple[str, str], dict[Hashable, Unit]] = {}
        self._places: dict[tuple[str, str], list[Location]] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def names(self) -> frozenset[str]:
        """The definitions."""
        return frozenset(name for _, name in self._places)

    def add(self, rule: str, name: str, old: Type, new: Type, location: Location) -> None:
        """Note that the definition `name` of one revision stands where the other has an inline type."""
        key = self._sides.olds.key(old) if rule == "ref-extracted" else self._sides.news.key(new)
        self._open.setdefault((rule, name), {}).setdefault(key, []).append((old, new, location))
        self._places.setdefault((rule, name), []).append(location)

    def settle(self) -> list[_Place]:
        """Return what is left to compare of what was noted; that may lead to more."""
        found: list[_Place] = []
        waiting, self._open = self._open, {}
        for (rule, name), places in waiting.items():
            units = self._units.setdefault((rule, name), {})
            for key in sorted(places, key=lambda key: (-len(places[key]), places[key][0][2].subject)):
                found += self._settle(rule, name, key, places[key], units)
        return found

    def _settle(
        self, rule: str, name: str, key: Hashable, places: list[_Place], units: dict[Hashable, Unit]
    ) -> Iterator[_Place]:
        old, new, location = places[0]
        known = units.get(key)
        unit = known or Unit(location.subject if units else self._label(rule, name), old, new, wire=False)
        units[key] = unit
        for before, after, place in places:
            for definition, names, within in (
                (self._sides.olds.named(before), unit.olds, unit.within_old),
                (self._sides.news.named(after), unit.news, unit.within_new),
            ):
                if definition is not None:
                    names.add(definition)
                else:  # an inline type is sent where it stands, even where others of its form share its class
                    within.append(place.unit)
            unit.wire = unit.wire or place.wire
        if known is None:
            sides = self._sides
            yield old, new, Location(unit, unit.label, sides.old.resolve(old), sides.new.resolve(new))

    def _label(self, rule: str, name: str) -> str:
        labels = self._sides.labels
        return labels.new(name) if rule == "ref-extracted" else labels.old(name)

    def report(self) -> None:
        """Return one change for each definition."""
        for (rule, name), locations in self._places.items():
            subjects = sorted({location.subject for location in locations})
            more = f" and {len(subjects) - _NAMED} more" if len(subjects) > _NAMED else ""
            inline = f"inline at {', '.join(subjects[:_NAMED])}{more}"
            before, after = (inline, name) if rule == "ref-extracted" else (name, inline)
            self._sides.changes.append(Change(rule, name, before, after, locations[0]))
