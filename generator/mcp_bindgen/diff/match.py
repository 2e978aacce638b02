"""Match the definitions of two revisions: by name, or as renamed if the evidence is strong.

Evidence for a renaming, in this order: the message of the same method; the old structure under a new name, after the
name was reused; a similar structure with most of the references; a unique equal structure. A pair is accepted if each
side is the best match of the other, so exchanging old and new gives the same pairs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeVar

from mcp_bindgen.ir.model import Array, Const, Map, Method, Object, Protocol, Ref, Type, Union, references

from .location import NEW, OLD, SIDES
from .normalize import Normalizer, category

T = TypeVar("T")

MIN_SIMILARITY = 0.5
"""Minimum similarity of two structures for a renaming with moved references, from 0 to 1."""

MIN_SIMILARITY_ALONE = 0.75
"""Minimum similarity without references."""


@dataclass(frozen=True)
class Matches:
    """Definitions that both revisions have, without inline types.

    Attributes:
        new: Old name -> new name.
        old: New name -> old name.
        redefined: Names with different meanings in the two revisions.
    """

    new: Mapping[str, str]
    old: Mapping[str, str]
    redefined: frozenset[str]

    def same(self, old: str, new: str) -> bool:
        """Return whether an old and a new definition are matched."""
        return self.new.get(old) == new


def renamed_methods(old: Protocol, new: Protocol, matches: Matches) -> dict[str, str]:
    """Return old name -> new name of renamed methods: their message or result is a matched definition.

    A result is evidence if no other method has it.
    """
    names = {method.name for method in old.methods}, {method.name for method in new.methods}
    gone = _evidence(method for method in old.methods if method.name not in names[NEW])
    come = _evidence(method for method in new.methods if method.name not in names[OLD])
    pairs = [(was, come.get((part, matches.new.get(name, "")))) for (part, name), was in gone.items()]
    return {was.name: now.name for was, now in pairs if now is not None and was.kind == now.kind}


def _evidence(methods: Iterable[Method]) -> dict[tuple[str, str], Method]:
    """Return role and definition -> method, for the messages and results of a single method."""
    found: dict[tuple[str, str], list[Method]] = defaultdict(list)
    for method in methods:
        found["message", method.definition].append(method)
        if isinstance(method.result, Ref):
            found["result", method.result.name].append(method)
    return {place: users[0] for place, users in found.items() if len(users) == 1}


def match(old: Protocol, new: Protocol) -> Matches:
    """Match the definitions of two revisions."""
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
            pass  # a new pair may be evidence for further pairs
        self.structures()
        return Matches(self.pairs, {new: old for old, new in self.pairs.items()}, frozenset(redefined))

    def pair(self, old: str, new: str) -> None:
        self.pairs[old] = new
        self.free[OLD].discard(old)
        self.free[NEW].discard(new)

    def messages(self) -> None:
        """Pair the messages of one method, also under different names."""
        old, new = self.protocols
        news = {method.name: method.definition for method in new.methods}
        for method in old.methods:
            name = news.get(method.name, "")
            if name in self.free[NEW] and method.definition in self.free[OLD]:
                self.pair(method.definition, name)

    def heirs(self, same: Iterable[str]) -> set[str]:
        """Return reused names, and pair the old definitions with their new names."""
        redefined: set[str] = set()
        for name in sorted(same):
            if any(isinstance(protocol.definitions[name].type, Ref) for protocol in self.protocols):
                continue  # an alias, or a union of one
            if self.category(OLD, name) == self.category(NEW, name):
                continue
            heir = _best({other: self.similarity(name, other) for other in self.free[NEW]}, MIN_SIMILARITY_ALONE)
            ancestor = _best({other: self.similarity(other, name) for other in self.free[OLD]}, MIN_SIMILARITY_ALONE)
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
        """Pair similar definitions with most of the references; return whether there were any."""
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
        return self.accept(scores, MIN_SIMILARITY)

    def accept(self, scores: Mapping[tuple[str, str], float], least: float) -> bool:
        """Pair definitions that are mutually the best match; return whether there were any."""
        rows: dict[tuple[int, str], dict[tuple[str, str], float]] = defaultdict(dict)
        for pair, score in scores.items():
            for side in SIDES:
                rows[side, pair[side]][pair] = score
        chosen = [pair for pair in scores if all(_best(rows[side, pair[side]], least) == pair for side in SIDES)]
        for pair in chosen:
            self.pair(*pair)
        return bool(chosen)

    def structures(self) -> None:
        """Pair the remaining definitions with equal, unique and non-trivial structures."""
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
        """Return the similarity of two definitions, from 0 to 1."""
        if self.category(OLD, old) != self.category(NEW, new):
            return 0.0
        mine = _parts(self.protocols[OLD].definitions[old].type)
        theirs = _parts(self.protocols[NEW].definitions[new].type)
        if not mine and not theirs:
            return 1.0
        score = sum(0.6 + 0.4 * (mine[part] == theirs[part]) for part in mine.keys() & theirs.keys())
        return score / len(mine.keys() | theirs.keys())


def _named(protocol: Protocol) -> set[str]:
    return {name for name, definition in protocol.definitions.items() if not definition.inline}


def _best(scores: Mapping[T, float], least: float) -> T | None:
    """Return the key with the highest score, if the score is unique and at least `least`."""
    highest = max(scores.values(), default=0.0)
    best = [one for one, score in scores.items() if score == highest >= least]
    return best[0] if len(best) == 1 else None


def _places(protocol: Protocol) -> dict[tuple[str, str], set[str]]:
    """Return definition and member -> referenced definitions."""
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
