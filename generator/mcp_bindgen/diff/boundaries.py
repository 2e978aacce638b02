"""Inline types of which a definition was made, and definitions that became inline types."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from mcp_bindgen.protocol.model import Type

from .spots import Change, Spot, Unit

if TYPE_CHECKING:
    from .compare import Comparer

_NAMED = 4
"""How many places a finding names."""

_Place = tuple[Type, Type, Spot]


class Boundaries:
    """Collects the places where one revision has a definition of its own and the other an inline type.

    Equal inline types are compared with the definition once. What most places had is compared under the name of the
    definition; where a place had something else, that goes by the place.

    Args:
        comparer: What compares them.
    """

    def __init__(self, comparer: Comparer) -> None:
        self._comparer = comparer
        self._open: dict[tuple[str, str], dict[Hashable, list[_Place]]] = {}
        self._units: dict[tuple[str, str], dict[Hashable, Unit]] = {}
        self._places: dict[tuple[str, str], list[Spot]] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def names(self) -> frozenset[str]:
        """The definitions."""
        return frozenset(name for _, name in self._places)

    def add(self, rule: str, name: str, old: Type, new: Type, spot: Spot) -> None:
        """Notes that the definition `name` of one revision stands where the other has an inline type."""
        key = self._comparer.olds.key(old) if rule == "ref-extracted" else self._comparer.news.key(new)
        self._open.setdefault((rule, name), {}).setdefault(key, []).append((old, new, spot))
        self._places.setdefault((rule, name), []).append(spot)

    def settle(self) -> None:
        """Compares what was noted; that may lead to more."""
        waiting, self._open = self._open, {}
        for (rule, name), places in waiting.items():
            units = self._units.setdefault((rule, name), {})
            for key in sorted(places, key=lambda key: (-len(places[key]), places[key][0][2].subject)):
                self._settle(rule, name, key, places[key], units)

    def _settle(self, rule: str, name: str, key: Hashable, places: list[_Place], units: dict[Hashable, Unit]) -> None:
        old, new, spot = places[0]
        known = units.get(key)
        unit = known or Unit(spot.subject if units else self._label(rule, name), old, new, wire=False)
        units[key] = unit
        comparer = self._comparer
        for before, after, place in places:
            for definition, names, within in (
                (comparer.olds.named(before), unit.olds, unit.within_old),
                (comparer.news.named(after), unit.news, unit.within_new),
            ):
                if definition is not None:
                    names.add(definition)
                else:  # an inline type is sent where it stands, even where others of its form share its class
                    within.append(place.unit)
            unit.wire = unit.wire or place.wire
        if known is None:
            top = Spot(unit, unit.label, comparer.old.resolve(old), comparer.new.resolve(new))
            comparer.compare(old, new, top)

    def _label(self, rule: str, name: str) -> str:
        labels = self._comparer.labels
        return labels.new(name) if rule == "ref-extracted" else labels.old(name)

    def report(self) -> None:
        """One change for each definition."""
        for (rule, name), spots in self._places.items():
            subjects = sorted({spot.subject for spot in spots})
            more = f" and {len(subjects) - _NAMED} more" if len(subjects) > _NAMED else ""
            inline = f"inline at {', '.join(subjects[:_NAMED])}{more}"
            before, after = (inline, name) if rule == "ref-extracted" else (name, inline)
            self._comparer.changes.append(Change(rule, name, before, after, spots[0]))
