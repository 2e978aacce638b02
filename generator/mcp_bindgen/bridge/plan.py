"""Plan a step: what becomes of each payload of one revision in an adjacent one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

from mcp_bindgen.protocol.model import (
    Array,
    Const,
    Free,
    Map,
    Method,
    Object,
    Protocol,
    Ref,
    Scalar,
    Sender,
    Type,
    Union,
)
from mcp_bindgen.protocol.model import Field as Member

from .edits import Apply, Cases, Each, Edit, Fill, Members, Named, Test, reach, sequence
from .rules import ANY, Path, Rule, Rules

Part = Literal["params", "results"]


class Kind(StrEnum):
    """How a place differs, and who knows what to do."""

    OPEN = "open"
    """The target ignores what the source says."""
    FILL = "fill"
    """The target wants what has a known default, or does not know what has one."""
    CLAIM = "claim"
    """The source leaves a name open that the target types."""
    HARD = "hard"
    """Only a rule can tell."""


@dataclass(frozen=True)
class Place:
    """A place where a payload of the source does not mean the same, or nothing, in the target.

    Attributes:
        path: Where it is.
        kind: How it differs.
        words: The difference in words.
        rule: What happens, if a rule says.
    """

    path: Path
    kind: Kind
    words: str
    rule: Rule | None = None

    @property
    def name(self) -> str:
        """The path as people read it."""
        return ".".join(self.path)


@dataclass(frozen=True)
class Outcome:
    """What is done to a value, and the places that it was planned for."""

    edit: Edit | None = None
    places: tuple[Place, ...] = ()


KEEP = Outcome()


@dataclass(frozen=True)
class Payload:
    """The params or the results of a method.

    Attributes:
        method: The method.
        part: Which of them.
        edit: What is done to them; `None` for nothing.
        places: The places in them.
    """

    method: str
    part: Part
    edit: Edit | None
    places: tuple[Place, ...]

    @property
    def kind(self) -> str:
        """The worst of its places: `rule`, `fill`, `open`, or else `identity`."""
        kinds = {place.kind for place in self.places}
        if Kind.HARD in kinds or any(place.rule for place in self.places):
            return "rule"
        return next((kind.value for kind in (Kind.FILL, Kind.OPEN) if kind in kinds), "identity")


@dataclass(frozen=True)
class Plan:
    """The conversion of all that a revision may say to an adjacent one.

    Attributes:
        source: The revision of what goes in.
        target: The revision of what comes out.
        payloads: All params and results of methods that both have.
        named: Source and target definition -> what is done to it, callees first.
        absent: Method that the target does not have -> why.
        unsent: Sender -> method that the target lets only the other side send -> why.
        errors: Method, or `*` -> code -> code.
        places: All places, each once.
        unused: Rules that match no place.
    """

    source: Protocol
    target: Protocol
    payloads: tuple[Payload, ...]
    named: Mapping[Named, Edit]
    absent: Mapping[str, str]
    unsent: Mapping[Sender, Mapping[str, str]]
    errors: Mapping[str, Mapping[int, int]]
    places: tuple[Place, ...]
    unused: tuple[Rule, ...] = ()

    @property
    def missing(self) -> tuple[Place, ...]:
        """The hard places without a rule."""
        return tuple(place for place in self.places if place.kind is Kind.HARD and place.rule is None)


def plan(source: Protocol, target: Protocol, rules: Rules) -> Plan:
    """Plan the step from `source` to `target`."""
    return _Planner(source, target, rules).plan()


@dataclass
class _Planner:
    source: Protocol
    target: Protocol
    rules: Rules
    used: set[Path] = field(default_factory=set[Path])
    named: dict[Named, Edit] = field(default_factory=dict[Named, Edit])
    outcomes: dict[Named, Outcome] = field(default_factory=dict[Named, Outcome])

    def plan(self) -> Plan:
        theirs = {method.name: method for method in self.target.methods}
        payloads: list[Payload] = []
        absent: dict[str, str] = {}
        unsent: dict[Sender, dict[str, str]] = {}
        places: list[Place] = []
        for method in self.source.methods:
            other = theirs.get(method.name)
            if other is None:
                place = self.place((method.name,), Kind.OPEN, f"MCP {self.target.revision} has no {method.name}")
                absent[method.name] = place.rule.because if place.rule else place.words
                places.append(place)
                continue
            for sender in method.senders:
                if sender not in other.senders:
                    words = f"in MCP {self.target.revision} no {sender} sends {method.name}"
                    place = self.place((method.name, sender), Kind.OPEN, words)
                    unsent.setdefault(sender, {})[method.name] = place.rule.because if place.rule else words
                    places.append(place)
            payloads += self.payloads(method, other)
        errors, changed = self.errors()
        places += [*changed, *(place for payload in payloads for place in payload.places)]
        unused = tuple(rule for path, rule in self.rules.items() if path not in self.used)
        reached = {key for payload in payloads for key in reach(payload.edit, self.named)}
        return Plan(
            self.source,
            self.target,
            tuple(payloads),
            {key: edit for key, edit in self.named.items() if key in reached},
            absent,
            unsent,
            errors,
            tuple(dict.fromkeys(places)),
            unused,
        )

    def payloads(self, method: Method, other: Method) -> Iterator[Payload]:
        if method.params is not None or other.params is not None:
            empty = Object(())
            outcome = self.outcome(method.params or empty, other.params or empty, (method.name, "params"))
            yield Payload(method.name, "params", outcome.edit, outcome.places)
        if method.result is not None and other.result is not None:
            ours, theirs = (_united(one.result, one.alternatives) for one in (method, other))
            outcome = self.outcome(ours, theirs, (method.name, "result"))
            yield Payload(method.name, "results", outcome.edit, outcome.places)

    def errors(self) -> tuple[dict[str, dict[int, int]], list[Place]]:
        """Return how codes change, and what names of errors only one side has."""
        ours, theirs = ({one.name: one.code for one in side.errors} for side in (self.source, self.target))
        found: dict[str, dict[int, int]] = {}
        places: list[Place] = []
        for name in [*(ours.keys() - theirs.keys()), *(theirs.keys() - ours.keys())]:
            side = self.target if name in ours else self.source
            place = self.place(("error", name), Kind.OPEN, f"MCP {side.revision} has no error {name}")
            places.append(place)
            if place.rule is not None and place.rule.action == "same_as":
                same = place.rule.value
                before, after = (ours[name], theirs[same]) if name in ours else (ours[same], theirs[name])
                for method in place.rule.methods or (ANY,):
                    found.setdefault(method, {})[before] = after
        return found, sorted(places, key=lambda place: place.path)

    # --- places and rules -------------------------------------------------------------------------------------

    def rule(self, path: Path) -> Rule | None:
        """Return the rule of a place; one of that very place comes before one of any definition."""
        stands = next((one for one in (path, (ANY, *path[1:])) if one in self.rules), None)
        if stands is None:
            return None
        self.used.add(stands)
        return self.rules[stands]

    def place(self, path: Path, kind: Kind, words: str) -> Place:
        return Place(path, kind, words, self.rule(path))

    def covered(self, outcome: Outcome, path: Path) -> Outcome:
        """Return what a rule of the whole place says, where there is one, instead of what its parts would need."""
        hard = [place for place in outcome.places if place.kind is Kind.HARD]
        if not (path in self.rules and outcome.places) and not ((ANY, *path[1:]) in self.rules and hard):
            return outcome
        worst = (hard or [*outcome.places])[0]
        settled = self.settled(Place(path, Kind.HARD if hard else worst.kind, worst.words, self.rule(path)))
        claims = (place for place in outcome.places if place.kind is Kind.CLAIM and place.rule is None)
        return replace(settled, places=(*settled.places, *claims))

    def has_rule(self, path: Path) -> bool:
        return path in self.rules or (ANY, *path[1:]) in self.rules

    def settled(self, place: Place) -> Outcome:
        """Return what is done to the value at a place by its rule; without one, it is refused."""
        rule = place.rule
        if rule is None:
            if place.kind is not Kind.HARD:
                return Outcome(None, (place,))
            return Outcome(Apply(Rule("refuse", place.words, path=place.path), place.path), (place,))
        applied = rule.action in ("refuse", "by") and not rule.at
        return Outcome(Apply(rule, place.path) if applied else None, (place,))

    def taken(self, path: Path) -> list[Edit]:
        """Return the rules of other places that are applied at `path`."""
        return [Apply(rule, rule.path, self.needle(rule.path)) for rule in self.rules.values() if rule.at == path]

    def needle(self, path: Path) -> bytes:
        """Return JSON text that is there whenever the source says what a place is about; empty where none tells."""
        owner = self.source.definitions.get(path[0])
        if owner is None or not isinstance(owner.type, Object) or len(path) < 2 or owner.type.field(path[1]) is None:
            return b""
        return f'"{path[1]}":{"[" if path[2:] == ("[]",) else ""}'.encode()

    # --- types ------------------------------------------------------------------------------------------------

    def outcome(self, ours: Type, theirs: Type, path: Path) -> Outcome:
        """Plan what becomes of a value of type `ours` where `theirs` is wanted."""
        found = self.covered(self.plain(ours, theirs, path), path)
        return replace(found, edit=sequence(*self.taken(path), found.edit))

    def plain(self, ours: Type, theirs: Type, path: Path) -> Outcome:
        match ours, self.target.resolve(theirs):
            case _, Free():
                return KEEP
            case _, Union():
                return self.union(ours, theirs, path)
            case Ref(name), _ if isinstance(self.source.resolve(ours), Object | Map):
                return self.definition(self.source, name, theirs, path)
            case Ref(), _:
                return self.plain(self.source.resolve(ours), theirs, path)
            case Union(), _:
                return self.union(ours, theirs, path)
            case Object() as one, Object() as other:
                return self.members(one, other, path[0])
            case Map(values), Object() as other:
                return self.members(Object((), values), other, _name(theirs) or path[0])
            case Object() as one, Map(values):
                return self.members(one, Object((), values), path[0])
            case Map(values), Map(others):
                return _each(self.plain(values, others, path), values=True)
            case Array(items, constraints), Array(others, limits):
                if set(limits) - set(constraints):
                    return self.narrower(path, theirs)
                return _each(self.plain(items, others, path))
            case one, other:
                return KEEP if _fits(one, other) else self.narrower(path, theirs)

    def narrower(self, path: Path, theirs: Type) -> Outcome:
        """Return what is done where the target takes only some of the values."""
        words = f"MCP {self.target.revision} does not take all of its values"
        return (
            Outcome(None, (Place(path, Kind.HARD, words),))
            if self.has_rule(path)
            else self.settled(self.place(path, Kind.HARD, words))
        )

    def definition(self, source: Protocol, name: str, theirs: Type, path: Path) -> Outcome:
        """Plan a definition once, wherever it is used."""
        resolved = source.definitions[name].type
        if isinstance(resolved, Ref):
            return self.plain(resolved, theirs, path)
        other = _name(self.final(theirs))
        if isinstance(resolved, Map) or not other:
            return self.plain(resolved, self.target.resolve(theirs), (name, *path[1:]) if not other else path)
        key = Named(name, other)
        if key not in self.outcomes:
            self.outcomes[key] = Outcome(key)  # what refers to itself converts itself
            found = self.plain(resolved, self.target.resolve(theirs), (name,))
            whole = sequence(*self.taken((name,)), found.edit)
            if whole is not None:
                self.named[key] = whole
            self.outcomes[key] = Outcome(key if whole is not None else None, found.places)
        return self.outcomes[key]

    def final(self, type: Type) -> Type:
        """Follow references to references."""
        while isinstance(type, Ref) and isinstance(inner := self.target.definitions[type.name].type, Ref):
            type = inner
        return type

    def members(self, ours: Object, theirs: Object, owner: str) -> Outcome:
        edits: list[tuple[str, Edit]] = []
        fills: list[Fill] = []
        drops: list[str] = []
        renames: list[tuple[str, str]] = []
        wants: list[tuple[str, Apply]] = []
        places: list[Place] = []

        def wanted(other: Member, *, replaces: bool) -> None:
            """Plan a member that the target wants and the source may leave out."""
            path, words = (owner, other.wire), f"MCP {self.target.revision} wants it"
            if other.default is not None:
                fills.append(Fill(other.wire, other.default, replaces))
                places.append(Place(path, Kind.FILL, words))
                return
            place = self.place(path, Kind.HARD, words)
            places.append(place)
            if place.rule is not None and place.rule.action == "give":
                fills.append(Fill(other.wire, place.rule.value, replaces))
            elif isinstance(refusal := self.settled(place).edit, Apply) and refusal.rule.action == "refuse":
                wants.append((other.wire, refusal))

        for one in ours.fields:
            path = (owner, one.wire)
            other = theirs.field(one.wire)
            if other is None:
                found = self.gone(one, theirs, path)
                places += found.places
                if found.places and (rule := found.places[0].rule) is not None and rule.action == "rename":
                    renames.append((one.wire, rule.value))
                    renamed = theirs.field(rule.value)
                    if renamed is not None:
                        inner = self.outcome(one.type, renamed.type, path)
                        found, places = inner, [*places, *inner.places]
                elif found.edit is None and _drops(found.places):
                    drops.append(one.wire)
            else:
                found = self.outcome(one.type, other.type, path)
                places += found.places
                if _drops(found.places):
                    drops.append(one.wire)
                if other.required and not one.required:
                    wanted(other, replaces=False)
            if found.edit is not None:
                edits.append((one.wire, found.edit))
        known = {one.wire for one in ours.fields} | {new for _, new in renames}
        for other in theirs.fields:
            if other.wire in known or (ours.extra is None and not other.required):
                continue
            path = (owner, other.wire)
            if other.required:
                wanted(other, replaces=True)
            elif not self.takes_anything(other.type):
                place = self.place(path, Kind.CLAIM, f"MCP {self.target.revision} types {'.'.join(path)}")
                found = self.settled(place)
                places.append(place)
                if _drops((place,)):
                    drops.append(other.wire)
                elif found.edit is not None:
                    edits.append((other.wire, found.edit))
        made = Members(tuple(edits), tuple(fills), tuple(drops), tuple(renames), tuple(wants))
        return Outcome(made if made != Members() else None, tuple(dict.fromkeys(places)))

    def takes_anything(self, type: Type) -> bool:
        return isinstance(self.target.resolve(type), Free)

    def is_stated(self, member: Member, protocol: Protocol) -> bool:
        """Tell whether a member has a default that `semantics.toml` states, beside what the schema itself allows."""
        return member.default is not None and len(_constants(protocol, member)) != 1

    def gone(self, one: Member, theirs: Object, path: Path) -> Outcome:
        """Plan a member that the target does not name."""
        if one.required and self.is_stated(one, self.source):
            return Outcome(None, (Place(path, Kind.FILL, f"MCP {self.target.revision} does without"),))
        place = self.place(path, Kind.OPEN, f"MCP {self.target.revision} does not know it")
        return self.settled(place)

    # --- unions -----------------------------------------------------------------------------------------------

    def union(self, ours: Type, theirs: Type, path: Path) -> Outcome:
        """Plan a union: each alternative becomes that of the target which it is, or most like."""
        mine, others, is_answer = _flat(self.source, ours), _flat(self.target, theirs), path[1:] == ("result",)
        found: list[tuple[Type, Outcome]] = []
        for one in mine:
            place = path if len(mine) == 1 else (*path, _label(one))
            match = self.answer(one, mine, others) if is_answer else self.match(one, others)
            if match is None:
                words = f"MCP {self.target.revision} has no {_label(one)} here"
                found.append((one, self.settled(self.place(place, Kind.HARD, words))))
                continue
            outcome = self.outcome(one, match, place)
            if _label(one) != _label(match) and isinstance(one, Ref) and outcome.edit is None and self.has_rule(place):
                outcome = self.settled(self.place(place, Kind.OPEN, f"is read as {_label(match)}"))
            found.append((one, outcome))
        places = tuple(dict.fromkeys(place for _, outcome in found for place in outcome.places))
        if len(mine) == 1 or not any(outcome.edit for _, outcome in found):
            return Outcome(found[0][1].edit, places)
        rest = found.pop(0)[1].edit if is_answer else None
        cases: dict[Test, Edit | None] = {}
        for one, outcome in sorted(found, key=lambda pair: self.kind(pair[0]) == "object"):
            if outcome.edit is not None or is_answer:
                rivals = [
                    other for other in mine if other not in [same for same, alike in found if _same(alike, outcome)]
                ]
                cases.setdefault(self.test(one, rivals), outcome.edit)
        return Outcome(Cases(tuple(cases.items()), rest), places)

    def match(self, one: Type, others: list[Type]) -> Type | None:
        """Return the alternative of the target that `one` is: of that name, with that constant, or else most like it."""
        same = [other for other in others if isinstance(one, Ref) and one == other]
        if same:
            return same[0]
        able = [other for other in others if self.able(one, other)]
        return max(able, key=lambda other: self.likeness(one, other), default=None)

    def answer(self, one: Type, mine: list[Type], others: list[Type]) -> Type | None:
        """Return what answers in the target: the result for the result, for what may come instead only its namesake."""
        return others[0] if one == mine[0] else next((other for other in others if one == other), None)

    def able(self, one: Type, other: Type) -> bool:
        """Tell whether a value could be meant: the same kind, no other constants, and all that is wanted."""
        mine, theirs = self.source.resolve(one), self.target.resolve(other)
        if isinstance(mine, Object) and isinstance(theirs, Object):
            return all(self.fitting(mine.field(field.wire), field) for field in theirs.fields)
        if isinstance(mine, Array | Map) or isinstance(theirs, Array | Map):
            return type(mine) is type(theirs)
        return _fits(mine, theirs)

    def fitting(self, mine: Member | None, theirs: Member) -> bool:
        if mine is None:
            return not theirs.required or self.is_stated(theirs, self.target)
        one, other = self.source.resolve(mine.type), self.target.resolve(theirs.type)
        return not (isinstance(one, Const) and isinstance(other, Const) and not set(one.values) & set(other.values))

    def likeness(self, one: Type, other: Type) -> int:
        mine, theirs = self.source.resolve(one), self.target.resolve(other)
        if isinstance(mine, Object) and isinstance(theirs, Object):
            return len({field.wire for field in mine.fields} & {field.wire for field in theirs.fields})
        return 0

    def kind(self, type: Type) -> str:
        return _kind(self.source.resolve(type))

    def test(self, one: Type, rest: list[Type]) -> Test:
        """Return the test that `one` passes and, of the others, as few as can be."""
        kind, rivals = self.kind(one), [other for other in rest if self.kind(other) == self.kind(one)]
        mine = self.source.resolve(one)
        objects = [rival for rival in map(self.source.resolve, rivals) if isinstance(rival, Object)]
        if not rivals or not isinstance(mine, Object):
            return Test(kind)
        for member in mine.fields:
            marks = _marks(self.source, member)
            others = [other for rival in objects if (other := rival.field(member.wire)) is not None]
            shared = any(set(marks) & set(_marks(self.source, other)) for other in others)
            if member.required and len(marks) == 1 and not shared:
                return Test(kind, member.wire, marks[0])
        for member in mine.fields:
            if member.required and not any(rival.field(member.wire) for rival in objects):
                wanted = (other.wire for rival in objects for other in rival.fields if other.required)
                return Test(kind, member.wire, lacks=tuple(dict.fromkeys(w for w in wanted if mine.field(w) is None)))
        return Test(kind)


def _united(result: Type, alternatives: Iterable[Type]) -> Type:
    members = (result, *alternatives)
    return Union(members) if len(members) > 1 else result


def _each(inner: Outcome, *, values: bool = False) -> Outcome:
    return replace(inner, edit=Each(inner.edit, values)) if inner.edit is not None else inner


def _drops(places: tuple[Place, ...]) -> bool:
    """Tell whether the member that has just these places is left out."""
    if len(places) != 1:
        return False
    (place,) = places
    return (place.rule is not None and place.rule.action == "drop") or (
        place.rule is None and place.kind is Kind.FILL and place.words.endswith("does without")
    )


def _same(one: Outcome, other: Outcome) -> bool:
    """Tell whether the same is done, wherever it stands."""
    if isinstance(one.edit, Apply) and isinstance(other.edit, Apply):
        return replace(one.edit.rule, path=()) == replace(other.edit.rule, path=())
    return one.edit == other.edit


def _name(type: Type) -> str:
    return type.name if isinstance(type, Ref) else ""


def _label(type: Type) -> str:
    """Return the name of an alternative in paths."""
    match type:
        case Ref(name):
            return name
        case Const(values):
            return "|".join(map(str, values))
        case _:
            return {"array": "[]", "object": "{}"}.get(_kind(type), _kind(type))


def _kind(type: Type) -> str:
    match type:
        case Object() | Map():
            return "object"
        case Array():
            return "array"
        case Scalar(kind):
            return kind
        case Const(values):
            return "string" if isinstance(values[0], str) else "number"
        case _:
            return "any"


def _flat(protocol: Protocol, type: Type) -> list[Type]:
    """Return the alternatives of a type: those of unions in it too."""
    resolved = protocol.resolve(type)
    if not isinstance(resolved, Union):
        while isinstance(type, Ref) and isinstance(inner := protocol.definitions[type.name].type, Ref):
            type = inner
        return [type if isinstance(resolved, Object | Map) else resolved]
    return list(dict.fromkeys(leaf for member in resolved.members for leaf in _flat(protocol, member)))


def _constants(protocol: Protocol, member: Member) -> tuple[Any, ...]:
    """Return the values that a member may have, where they are few."""
    resolved = protocol.resolve(member.type)
    return resolved.values if isinstance(resolved, Const) else ()


def _marks(protocol: Protocol, member: Member) -> tuple[Any, ...]:
    """Return the values that tell what has the member: its constants, or the default that stands for its kind."""
    return _constants(protocol, member) or (() if member.default is None else (member.default,))


def _fits(ours: Type, theirs: Type) -> bool:
    """Tell whether a plain type takes all values of another one."""
    match ours, theirs:
        case Const(values), Const(others):
            return set(values) <= set(others)
        case Const(values), Scalar(kind, ()):
            return all(_kind(Const((value,))) == kind for value in values)
        case Scalar(kind, constraints), Scalar(other, limits):
            return (kind == other or (kind, other) == ("integer", "number")) and not set(limits) - set(constraints)
        case _:
            return False
