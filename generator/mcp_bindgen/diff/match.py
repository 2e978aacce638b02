"""Match the definitions of two revisions: by name, or as renamed where the evidence is strong.

Evidence for a rename is, in this order: the message of the same method; an heir of the old structure where a name was
given to something else; a similar structure to which most references have moved; the same structure, found only once.
A pair is accepted when each side is the other's best, so exchanging old and new gives the same pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from mcp_bindgen.protocol.model import Array, Const, Map, Object, Protocol, Ref, Type, Union, references

from .normalize import Normalizer, category

SIMILAR = 0.5
"""How much of a structure must be the same for a rename to which the references have moved."""

ALIKE = 0.75
"""How much without references."""


@dataclass(frozen=True)
class Matches:
    """The definitions that both revisions have, hoisted ones excepted.

    Attributes:
        new: Old name -> new name.
        old: New name -> old name.
        redefined: Names that both revisions have, for different things.
    """

    new: Mapping[str, str]
    old: Mapping[str, str]
    redefined: frozenset[str]

    def same(self, old: str, new: str) -> bool:
        """Return whether the two are one definition."""
        return self.new.get(old) == new


def match(old: Protocol, new: Protocol) -> Matches:
    """Find the definitions that the two have in common."""
    return _Matcher(old, new).run()


class _Matcher:
    def __init__(self, old: Protocol, new: Protocol) -> None:
        self.old, self.new = old, new
        self.pairs: dict[str, str] = {}
        self.free_old = {name for name, definition in old.definitions.items() if not definition.hoisted}
        self.free_new = {name for name, definition in new.definitions.items() if not definition.hoisted}

    def run(self) -> Matches:
        same = self.free_old & self.free_new
        for name in same:
            self.pair(name, name)
        self.messages()
        redefined = self.heirs(same)
        while self.references():
            pass  # a pair may bring its neighbours together
        self.structures()
        return Matches(self.pairs, {new: old for old, new in self.pairs.items()}, frozenset(redefined))

    def pair(self, old: str, new: str) -> None:
        self.pairs[old] = new
        self.free_old.discard(old)
        self.free_new.discard(new)

    def messages(self) -> None:
        """Return the messages of one method are one definition, whatever they are called."""
        news = {method.name: method.definition for method in self.new.methods}
        for method in self.old.methods:
            name = news.get(method.name, "")
            if name in self.free_new and method.definition in self.free_old:
                self.pair(method.definition, name)

    def heirs(self, same: Iterable[str]) -> set[str]:
        """Find names that were given to something else, while the old thing lives on under another name."""
        redefined: set[str] = set()
        for name in sorted(same):
            if isinstance(self.old.definitions[name].type, Ref) or isinstance(self.new.definitions[name].type, Ref):
                continue  # an alias, or a union of one
            if self.category(self.old, name) == self.category(self.new, name):
                continue
            heir = _best({other: self.similarity(name, other) for other in self.free_new}, ALIKE)
            ancestor = _best({other: self.similarity(other, name) for other in self.free_old}, ALIKE)
            if heir is None and ancestor is None:
                continue
            redefined.add(name)
            del self.pairs[name]
            self.free_old.add(name)
            self.free_new.add(name)
            if heir is not None:
                self.pair(name, heir)
            if ancestor is not None:
                self.pair(ancestor, name)
        return redefined

    def references(self) -> bool:
        """Pair similar definitions to which most references have moved; whether there were any."""
        before, after = _places(self.old), _places(self.new)
        votes: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        total_old: dict[str, int] = defaultdict(int)
        total_new: dict[str, int] = defaultdict(int)
        for (owner, wire), names in before.items():
            others = after.get((self.pairs.get(owner, owner), wire))
            if others is None:
                continue
            gone, come = names & self.free_old, others & self.free_new
            for a in gone:
                total_old[a] += 1
                for b in come:
                    votes[a][b] += 1
            for b in come:
                total_new[b] += 1
        scores = {
            (a, b): self.similarity(a, b)
            for a, row in votes.items()
            for b, count in row.items()
            if 2 * count >= max(total_old[a], total_new[b])
        }
        return self.accept(scores, SIMILAR)

    def accept(self, scores: Mapping[tuple[str, str], float], least: float) -> bool:
        """Pair those that are each other's best."""
        by_old: dict[str, dict[str, float]] = defaultdict(dict)
        by_new: dict[str, dict[str, float]] = defaultdict(dict)
        for (a, b), score in scores.items():
            by_old[a][b] = score
            by_new[b][a] = score
        chosen = [
            (a, best)
            for a, row in by_old.items()
            if (best := _best(row, least)) is not None and _best(by_new[best], least) == a
        ]
        for a, b in chosen:
            self.pair(a, b)
        return bool(chosen)

    def structures(self) -> None:
        """Pair what is left where the same structure, and not a trivial one, is found once on either side."""
        normalizer = Normalizer(self.old, lambda name: self.pairs.get(name, name)), Normalizer(self.new)
        found: list[dict[Hashable, list[str]]] = []
        for shape, free in zip(normalizer, (self.free_old, self.free_new), strict=True):
            by_key: dict[Hashable, list[str]] = defaultdict(list)
            for name in free:
                type = shape.protocol.definitions[name].type
                if _size(type) > 1:
                    by_key[shape.key(type)].append(name)
            found.append(by_key)
        for key, olds in found[0].items():
            others = found[1].get(key, [])
            if len(olds) == len(others) == 1:
                self.pair(olds[0], others[0])

    def category(self, protocol: Protocol, name: str) -> str:
        """Return the JSON type of a definition."""
        return category(protocol.resolve(Ref(name)))

    def similarity(self, old: str, new: str) -> float:
        """Return how much of two definitions is the same, from 0 to 1."""
        if self.category(self.old, old) != self.category(self.new, new):
            return 0.0
        one, other = self.old.definitions[old].type, self.new.definitions[new].type
        mine, theirs = _parts(one), _parts(other)
        if not mine and not theirs:
            return 1.0
        score = sum(0.6 + 0.4 * (mine[part] == theirs[part]) for part in mine.keys() & theirs.keys())
        return score / len(mine.keys() | theirs.keys())


def _best(scores: Mapping[str, float], least: float) -> str | None:
    """Return the name with the highest score, if it is high enough and no other name has the same."""
    ranked = sorted(scores, key=lambda name: -scores[name])[:2]
    if not ranked or scores[ranked[0]] < least:
        return None
    if len(ranked) == 2 and scores[ranked[0]] == scores[ranked[1]]:
        return None
    return ranked[0]


def _places(protocol: Protocol) -> dict[tuple[str, str], set[str]]:
    """Return definition and member -> the definitions that it refers to."""
    found: dict[tuple[str, str], set[str]] = {}
    for name, definition in protocol.definitions.items():
        if isinstance(definition.type, Object):
            for field in definition.type.fields:
                found[name, field.wire] = set(references(field.type))
        else:
            found[name, ""] = set(references(definition.type))
    return found


def _parts(type: Type) -> dict[str, object]:
    """Return the parts of a type: members of an object or of a union, values of an enumeration."""
    match type:
        case Object(fields):
            return {field.wire: (field.required, field.type) for field in fields}
        case Union(members):
            return {repr(member): member for member in members}
        case Const(values):
            return {repr(value): value for value in values}
        case Array(items):
            return {"items": items}
        case Map(values):
            return {"values": values}
        case _:
            return {"": type}


def _size(type: Type) -> int:
    return len(_parts(type)) if isinstance(type, Object | Union | Const) else 0
