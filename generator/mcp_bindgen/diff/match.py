"""Match the definitions of two revisions: by name, or as renamed where the evidence is strong.

Evidence for a rename is, in this order: the message of the same method; an heir of the old structure where a name was
given to something else; a similar structure to which most references have moved; the same structure, found only once.
A pair is accepted when each side is the other's best, so exchanging old and new gives the same pairs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from mcp_bindgen.protocol.model import Array, Const, Map, Method, Object, Protocol, Ref, Type, Union, references

from .location import NEW, OLD, SIDES
from .normalize import Normalizer, category

T = TypeVar("T")

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


def renamed_methods(old: Protocol, new: Protocol, matches: Matches) -> dict[str, str]:
    """Return old name -> new name of the methods whose message, or whose result, is one definition in both.

    A result is evidence where it answers nothing else.
    """
    names = {method.name for method in old.methods}, {method.name for method in new.methods}
    gone = _evidence(method for method in old.methods if method.name not in names[NEW])
    come = _evidence(method for method in new.methods if method.name not in names[OLD])
    pairs = [(was, come.get((part, matches.new.get(name, "")))) for (part, name), was in gone.items()]
    return {was.name: now.name for was, now in pairs if now is not None and was.kind == now.kind}


def _evidence(methods: Iterable[Method]) -> dict[tuple[str, str], Method]:
    """Return the definitions that belong to one method alone, and whether they are its message or its result."""
    found: dict[tuple[str, str], list[Method]] = defaultdict(list)
    for method in methods:
        found["message", method.definition].append(method)
        if isinstance(method.result, Ref):
            found["result", method.result.name].append(method)
    return {place: users[0] for place, users in found.items() if len(users) == 1}


def match(old: Protocol, new: Protocol) -> Matches:
    """Find the definitions that the two have in common."""
    return _Matcher(old, new).run()


class _Matcher:
    def __init__(self, old: Protocol, new: Protocol) -> None:
        self.protocols = old, new
        self.pairs: dict[str, str] = {}
        self.free = _named(old), _named(new)

    def run(self) -> Matches:
        same = self.free[OLD] & self.free[NEW]
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
        self.free[OLD].discard(old)
        self.free[NEW].discard(new)

    def messages(self) -> None:
        """Pair the messages of one method: they are one definition, whatever they are called."""
        old, new = self.protocols
        news = {method.name: method.definition for method in new.methods}
        for method in old.methods:
            name = news.get(method.name, "")
            if name in self.free[NEW] and method.definition in self.free[OLD]:
                self.pair(method.definition, name)

    def heirs(self, same: Iterable[str]) -> set[str]:
        """Find names that were given to something else, while the old thing lives on under another name."""
        redefined: set[str] = set()
        for name in sorted(same):
            if any(isinstance(protocol.definitions[name].type, Ref) for protocol in self.protocols):
                continue  # an alias, or a union of one
            if self.category(OLD, name) == self.category(NEW, name):
                continue
            heir = _best({other: self.similarity(name, other) for other in self.free[NEW]}, ALIKE)
            ancestor = _best({other: self.similarity(other, name) for other in self.free[OLD]}, ALIKE)
            if heir is None and ancestor is None:
                continue
            redefined.add(name)
            del self.pairs[name]
            for free in self.free:
                free.add(name)
            if heir is not None:
                self.pair(name, heir)
            if ancestor is not None:
                self.pair(ancestor, name)
        return redefined

    def references(self) -> bool:
        """Pair similar definitions to which most references have moved; whether there were any."""
        before, after = map(_places, self.protocols)
        votes = Counter[tuple[str, str]]()
        totals = Counter[str](), Counter[str]()
        for (owner, wire), names in before.items():
            others = after.get((self.pairs.get(owner, owner), wire))
            if others is not None:
                gone, come = names & self.free[OLD], others & self.free[NEW]
                votes.update(product(gone, come))
                totals[OLD].update(gone)
                totals[NEW].update(come)
        scores = {
            (a, b): self.similarity(a, b)
            for (a, b), count in votes.items()
            if 2 * count >= max(totals[OLD][a], totals[NEW][b])
        }
        return self.accept(scores, SIMILAR)

    def accept(self, scores: Mapping[tuple[str, str], float], least: float) -> bool:
        """Pair those that are each other's best."""
        rows: dict[tuple[int, str], dict[tuple[str, str], float]] = defaultdict(dict)
        for pair, score in scores.items():
            for side in SIDES:
                rows[side, pair[side]][pair] = score
        chosen = [pair for pair in scores if all(_best(rows[side, pair[side]], least) == pair for side in SIDES)]
        for pair in chosen:
            self.pair(*pair)
        return bool(chosen)

    def structures(self) -> None:
        """Pair what is left where the same structure, and not a trivial one, is found once on either side."""
        old, new = self.protocols
        forms = Normalizer(old, lambda name: self.pairs.get(name, name)), Normalizer(new)
        found: list[dict[Hashable, list[str]]] = [defaultdict(list), defaultdict(list)]
        for side in SIDES:
            for name in self.free[side]:
                type = self.protocols[side].definitions[name].type
                if isinstance(type, Object | Union | Const) and len(_parts(type)) > 1:
                    found[side][forms[side].key(type)].append(name)
        for key, olds in found[OLD].items():
            others = found[NEW].get(key, [])
            if len(olds) == len(others) == 1:
                self.pair(olds[0], others[0])

    def category(self, side: int, name: str) -> str:
        """Return the JSON type of a definition."""
        return category(self.protocols[side].resolve(Ref(name)))

    def similarity(self, old: str, new: str) -> float:
        """Return how much of two definitions is the same, from 0 to 1."""
        if self.category(OLD, old) != self.category(NEW, new):
            return 0.0
        mine = _parts(self.protocols[OLD].definitions[old].type)
        theirs = _parts(self.protocols[NEW].definitions[new].type)
        if not mine and not theirs:
            return 1.0
        score = sum(0.6 + 0.4 * (mine[part] == theirs[part]) for part in mine.keys() & theirs.keys())
        return score / len(mine.keys() | theirs.keys())


def _named(protocol: Protocol) -> set[str]:
    return {name for name, definition in protocol.definitions.items() if not definition.hoisted}


def _best(scores: Mapping[T, float], least: float) -> T | None:
    """Return what has the highest score, if it is high enough and nothing else has the same."""
    highest = max(scores.values(), default=0.0)
    best = [one for one, score in scores.items() if score == highest >= least]
    return best[0] if len(best) == 1 else None


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
