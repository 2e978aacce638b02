"""Compare inline types of one revision with definitions of the other revision."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

from mcp_bindgen.spec.errors import several

from .location import NEW, OLD, SIDES, Change, Location, Unit
from .sides import Sides

_NAMED = 4
"""Maximum number of places in the text of a finding."""

_Key = tuple[str, str]
"""Rule and definition."""


class Inlining:
    """Places with a definition in one revision and an inline type in the other.

    Equal inline types are compared with the definition once. The most frequent inline type is compared under the name
    of the definition, other inline types under the names of their places.

    Args:
        sides: Both revisions.
    """

    def __init__(self, sides: Sides) -> None:
        self._sides = sides
        self._open: dict[_Key, dict[Hashable, list[Location]]] = {}
        self._units: dict[_Key, dict[Hashable, Unit]] = {}
        self._places: dict[_Key, list[Location]] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def names(self) -> frozenset[str]:
        """Names of the definitions."""
        return frozenset(name for _, name in self._places)

    def add(self, rule: str, name: str, location: Location) -> None:
        """Note a place with the definition `name` in one revision and an inline type in the other."""
        inline = OLD if rule == "ref-extracted" else NEW
        key = self._sides.forms[inline].key(location.types[inline])
        self._open.setdefault((rule, name), {}).setdefault(key, []).append(location)
        self._places.setdefault((rule, name), []).append(location)

    def settle(self) -> Iterator[Location]:
        """Return the noted places that need a comparison; comparing them may add places."""
        waiting, self._open = self._open, {}
        for (rule, name), places in waiting.items():
            units = self._units.setdefault((rule, name), {})
            for key in sorted(places, key=lambda key: (-len(places[key]), places[key][0].subject)):
                first, is_new = places[key][0], key not in units
                if is_new:
                    own = self._sides.subjects.one(NEW if rule == "ref-extracted" else OLD, name)
                    units[key] = Unit(first.subject if units else own, first.types, wire=False)
                self._widen(units[key], places[key])
                if is_new:
                    yield Location(units[key], units[key].label, first.types)

    def _widen(self, unit: Unit, places: list[Location]) -> None:
        """Add places to a unit."""
        for place in places:
            for side in SIDES:
                definition = self._sides.forms[side].named(place.types[side])
                if definition is not None:
                    unit.names[side].add(definition)
                else:  # an inline type is sent in its own place only
                    unit.within[side].append(place.unit)
            unit.wire = unit.wire or place.wire

    def report(self) -> None:
        """Note one change for each definition."""
        for (rule, name), locations in self._places.items():
            subjects = sorted({location.subject for location in locations})
            inline = f"inline at {several(subjects, _NAMED)}"
            descriptions = (inline, name) if rule == "ref-extracted" else (name, inline)
            self._sides.changes.append(Change(rule, replace(locations[0], subject=name), descriptions))
