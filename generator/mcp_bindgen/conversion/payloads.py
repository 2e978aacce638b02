"""Plan the conversion of values from a type of one revision to a type of another revision."""

from __future__ import annotations

from collections.abc import Sequence as Several
from dataclasses import dataclass, field, replace

from mcp_bindgen.ir.assignability import Assignability
from mcp_bindgen.ir.examples import fits
from mcp_bindgen.ir.model import AnyValue, Array, Const, Field, Map, Object, Protocol, Ref, Scalar, Type, Union, parts
from mcp_bindgen.ir.text import describe
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.json import join

from .alternatives import Matching, alternatives, final, is_stated, kind, label
from .differences import Difference, Kind, Outcome
from .edits import Apply, Case, Cases, Check, Each, Edit, Fill, Members, Move, Named, Test, Try, sequence
from .rules import ANY, ONLY_ITEM, Item, Path, Place, Rule, Rules


@dataclass(frozen=True)
class Spot:
    """A place in the types of a revision.

    Attributes:
        type: The type of the value.
        path: The path of the value in the words of the schema.
        is_required: True if each object has a value there.
        holders: The type after each step of the place, resolved.
    """

    type: Type
    path: Path
    is_required: bool
    holders: tuple[Type, ...]


def find(protocol: Protocol, type: Type, place: Place, path: Path) -> Spot | None:
    """Return a place below a type, or None if values of the type have no such place."""
    is_required, holders = True, list[Type]()
    for step in place:
        holder = protocol.resolve(type)
        if isinstance(step, str) and step != ONLY_ITEM:
            member = protocol.field_of(holder, step)
            if member is None:
                return None
            path = (type.name if isinstance(type, Ref) else path[0], step)
            type, is_required = member.type, is_required and member.required
        elif not isinstance(holder, Array):
            return None
        elif isinstance(step, Item):
            fitting = [one for one in alternatives(protocol, holder.items) if _is_of(protocol, one, step)]
            if not fitting:
                return None
            type, path, is_required = fitting[0], (label(fitting[0]),), False
        else:
            type, path = holder.items, (*path, ONLY_ITEM)
        holders.append(protocol.resolve(type))
    return Spot(type, path, is_required, tuple(holders))


def _is_of(protocol: Protocol, type: Type, item: Item) -> bool:
    """Return True if an object may have the members of an item."""
    members = [(protocol.field_of(type, name), value) for name, value in item.members.items()]
    return all(member is not None and fits(protocol, member.type, value) for member, value in members)


KEEP = Outcome()
_OBJECT = Map(AnyValue())
UNRULED = (Kind.NEEDS_RULE, Kind.CHECKED)
"""Kinds of differences whose values are refused without a rule."""


@dataclass
class Payloads:
    """Plans the conversion of values, each definition once.

    Attributes:
        source: The revision of the messages.
        target: The revision that they are converted to.
        rules: Path -> rule.
        used: The paths whose rule was applied.
        named: Definition -> edit, inner definitions first.
    """

    source: Protocol
    target: Protocol
    rules: Rules
    used: set[Path] = field(default_factory=set[Path])
    named: dict[Named, Edit] = field(default_factory=dict[Named, Edit])
    _given: set[Path] = field(default_factory=set[Path])
    _outcomes: dict[Named, Outcome] = field(default_factory=dict[Named, Outcome])

    def answers(self, ours: tuple[Type, ...], theirs: tuple[Type, ...], path: Path) -> Outcome:
        """Plan the result of a request and its alternatives.

        Args:
            ours: The result and its alternatives in the source.
            theirs: The result and its alternatives in the target.
            path: Path of the value.
        """
        result = self.outcome(ours[0], theirs[0], path)
        others = [(one, self._alternative(one, one if one in theirs else None, path)) for one in ours[1:]]
        differences = [*result.differences, *(one for _, outcome in others for one in outcome.differences)]
        edit = result.edit
        if others and (edit is not None or any(outcome.edit for _, outcome in others)):
            tests = Matching(self.source, self.target)
            cases = [
                Case(tests.test(one, [other for other in ours if other != one]), done.edit) for one, done in others
            ]
            edit = Cases(tuple(cases), edit)
        return Outcome(edit, tuple(dict.fromkeys(differences)))

    def outcome(self, ours: Type, theirs: Type, path: Path) -> Outcome:
        """Plan the conversion of a value: by the rule of its path, else by its parts."""
        found = self._parts(ours, theirs, path)
        unruled = [difference for difference in found.differences if difference.kind in UNRULED]
        if (path in self.rules and found.differences) or ((ANY, *path[1:]) in self.rules and unruled):
            worst = (unruled or [*found.differences])[0]
            type_conflicts = [one for one in found.differences if one.kind is Kind.TYPE_CONFLICT and one.rule is None]
            settled = self._settled(self.difference(path, worst.kind, worst.description))
            if unruled and all(one.kind is Kind.CHECKED for one in unruled):  # the rule is for values that are refused
                settled = replace(settled, edit=_ruled(found.edit, settled))
            found = Outcome(settled.edit, (*settled.differences, *type_conflicts))
        return replace(found, edit=sequence(*self._taken(path), found.edit))

    def difference(self, path: Path, kind: Kind, description: str) -> Difference:
        """Return a difference with its rule: the rule of its path, else the rule for any definition."""
        stands = next((one for one in (path, (ANY, *path[1:])) if one in self.rules), None)
        if stands is None:
            return Difference(path, kind, description)
        self.used.add(stands)
        return Difference(path, kind, description, self.rules[stands])

    def _settled(self, difference: Difference) -> Outcome:
        """Return the edit by the rule of a difference; without the rule that it needs, it is refused."""
        rule = difference.rule
        if rule is None and difference.kind in UNRULED:
            fix = "; write a rule for it: mcp-bindgen bridges --missing" if difference.kind is Kind.NEEDS_RULE else ""
            rule = Rule("refuse", f"{difference.description}{fix}")
        is_applied = rule is not None and rule.action in ("refuse", "by") and not rule.at
        return Outcome(Apply(rule, difference.path) if rule and is_applied else None, (difference,))

    def _taken(self, path: Path) -> list[Edit]:
        """Return the edits of rules of other paths that apply at `path`."""
        applied = [rule for rule in self.rules.values() if rule.at == path]
        self.used.update(rule.path for rule in applied if rule.is_users)
        return [Apply(rule, rule.path, self._required_text(rule.path)) for rule in applied]

    def _required_text(self, path: Path) -> str:
        """Return JSON text that every value with the difference contains; empty if there is no such text."""
        owner = self.source.definitions.get(path[0])
        member = "".join(path[1:2])
        if owner is None or not isinstance(owner.type, Object) or owner.type.field(member) is None:
            return ""
        return f'"{member}":{"[" if path[-1] == "[]" else ""}'

    # --- by the kind of type ----------------------------------------------------------------------------------

    def _parts(self, ours: Type, theirs: Type, path: Path) -> Outcome:
        match ours, self.target.resolve(theirs):
            case _, AnyValue():
                return KEEP
            case _, Union():
                return self._union(ours, theirs, path)
            case Ref(name), _:
                return self._definition(name, theirs, path)
            case Union(), _:
                return self._union(ours, theirs, path)
            case Object() as one, Object() as other:
                return self._members(one, other, path[0])
            case Map(values), Object() as other:
                return self._members(Object((), values), other, label(final(self.target, theirs)))
            case Object() as one, Map(values):
                return self._members(one, Object((), values), path[0])
            case AnyValue(), Object():
                return _in_order(self._parts(ours, _OBJECT, path), self._parts(_OBJECT, theirs, path))
            case Map(values), Map(others):
                return _each(self._parts(values, others, path), values=True)
            case Array(items, limits), Array(others, narrower):
                inner = _each(self._parts(items, others, path))
                length = self._narrower(Array(AnyValue(), limits), (Array(AnyValue(), narrower),), path)
                return _in_order(length, inner)
            case one, other:
                return self._narrower(one, (other,), path)

    def _narrower(self, ours: Type, theirs: Several[Type], path: Path) -> Outcome:
        """Plan a value of which the target may accept only some values: it is checked, if any can be accepted."""
        if Assignability(self.target, self.source).accepts(Union(tuple(theirs)), ours):
            return KEEP
        limits = self._limits(ours, theirs)
        wanted = " | ".join(map(describe, limits or theirs))
        description = f"MCP {self.target.revision} accepts {wanted}{' only' if limits else f', not {describe(ours)}'}"
        found = self._settled(Difference(path, Kind.CHECKED if limits else Kind.NEEDS_RULE, description))
        return found if found.edit is None else replace(found, edit=Check(limits, found.edit)) if limits else found

    def _limits(self, ours: Type, theirs: Several[Type]) -> tuple[Type, ...]:
        """Return the types that a value is checked with; none if a check cannot decide, or no value is accepted."""
        is_open, kinds = isinstance(ours, AnyValue), Array if isinstance(ours, Array) else Scalar | Const
        simple = tuple(one for one in theirs if isinstance(one, kinds) or (is_open and [*parts(one)] == [AnyValue()]))
        is_decided = not is_open or len(simple) == len(theirs)
        return simple if is_decided and any(self._overlap(ours, other) for other in simple) else ()

    def _overlap(self, ours: Type, theirs: Type) -> bool:
        """Return True if a type of the target that is no object accepts some values of a type of the source."""
        if isinstance(ours, Const):
            return any(fits(self.target, theirs, value) for value in ours.values)
        if isinstance(theirs, Const):
            return any(fits(self.source, ours, value) for value in theirs.values)
        kinds = {kind(self.source.resolve(ours)), kind(theirs)}
        return len(kinds) == 1 or "any" in kinds or kinds == {"number", "integer"}

    def _definition(self, name: str, theirs: Type, path: Path) -> Outcome:
        """Plan the conversion of a definition, once for each definition of the target that it becomes."""
        mine, other = self.source.definitions[name].type, final(self.target, theirs)
        if not isinstance(mine, Object) or not isinstance(other, Ref):
            return self._parts(mine, other, path if not isinstance(mine, Object) else (name,))
        key = Named(name, other.name)
        if key not in self._outcomes:
            self._outcomes[key] = Outcome(key)  # a recursive definition refers to its own edit
            found = self._parts(mine, self.target.definitions[other.name].type, (name,))
            edit = sequence(*self._taken((name,)), found.edit)
            if edit is not None:
                self.named[key] = edit
            self._outcomes[key] = Outcome(None if edit is None else key, found.differences)
        return self._outcomes[key]

    # --- objects ----------------------------------------------------------------------------------------------

    def _members(self, ours: Object, theirs: Object, owner: str) -> Outcome:
        parts: list[Members] = []
        differences: list[Difference] = []
        moves = self._moves(ours, theirs, owner, differences)
        gone = {str(move.applied.rule.take[0]) for move in moves if _takes_all(move)}
        new = {str(move.applied.rule.put[0]): False for move in moves}
        new |= {str(move.applied.rule.put[0]): True for move in moves if moves[move]}
        for one in ours.fields:
            if one.wire not in gone:
                found = self._member(one, theirs, (owner, one.wire))
                parts.append(found[0])
                differences += found[1]
            other = theirs.field(one.wire)
            is_sent = new.get(one.wire, False) or (one.required and one.wire not in gone)
            if other is not None and other.required and not is_sent:
                parts.append(self._wanted(other, owner, differences, replaces=False))
        for other in theirs.fields:
            if ours.field(other.wire) is None and not new.get(other.wire, False):
                if other.required:
                    parts.append(self._wanted(other, owner, differences, replaces=other.wire not in new))
                elif other.wire in new:
                    continue
                elif ours.extra is not None and self._may_clash(ours.extra, other.type):
                    description = f"MCP {self.target.revision} types it"
                    difference = self.difference((owner, other.wire), Kind.TYPE_CONFLICT, description)
                    differences.append(difference)
                    parts.append(_edited(difference.path, self._settled(difference)))
        unknown = tuple(name for name in new if ours.field(name) is None)  # the names mean nothing in the source
        parts.append(Members(drops=unknown, moves=tuple(moves)))
        if theirs.extra is None and ours.extra is not None:
            parts.append(Members(only=tuple(member.wire for member in theirs.fields)))
        made = Members.joined(parts)
        return Outcome(made if made != Members() else None, tuple(dict.fromkeys(differences)))

    def _member(self, one: Field, theirs: Object, path: Path) -> tuple[Members, tuple[Difference, ...]]:
        """Plan the conversion of a member of the source."""
        if (other := theirs.field(one.wire)) is not None:
            found = self.outcome(one.type, other.type, path)
            if other.required and (drop := _drops(found.differences, path)):
                raise self._impossible(drop, f"which MCP {self.target.revision} wants")
        elif theirs.extra is None or is_stated(self.source, one):
            difference = self.difference(path, Kind.FILL, f"MCP {self.target.revision} does without")
            found = self._settled(difference)
            if difference.rule is None:
                return Members(drops=(one.wire,)), found.differences
        else:
            found = self._settled(self.difference(path, Kind.IGNORED, f"MCP {self.target.revision} does not know it"))
        return _edited(path, found), found.differences

    def _moves(self, ours: Object, theirs: Object, owner: str, differences: list[Difference]) -> dict[Move, bool]:
        """Plan the values that rules move; return each with True if the source always has it.

        Raises:
            BadInput: The target has no such place, or does not accept the values there.
        """
        found: list[tuple[Rule, Spot, Spot]] = []
        definition = self.target.definitions.get(owner)
        for rule in self.rules.values():
            source = find(self.source, ours, rule.take, (owner,)) if rule.path[0] in (owner, ANY) else None
            if source is None or not rule.put:
                continue
            target = find(self.target, theirs, rule.put, (owner,))
            if target is not None:
                found.append((rule, source, target))
            elif rule.path[0] == owner and (definition is None or definition.type == theirs):
                raise self._impossible(rule, f"which MCP {self.target.revision} does not have")
        moves: dict[Move, bool] = {}
        given = {step for rule, source, _ in found if source.is_required for step in rule.put if isinstance(step, str)}
        for rule, source, target in found:
            for holder, before, after in zip(target.holders, rule.put, rule.put[1:], strict=False):
                there = {after, *(before.members if isinstance(before, Item) else given)}
                for one in holder.fields if isinstance(holder, Object) else ():
                    if one.required and one.wire not in there:
                        raise self._impossible(rule, f"where MCP {self.target.revision} also wants {one.wire!r}")
            inner = self._parts(source.type, target.type, source.path)
            if any(one.kind is Kind.NEEDS_RULE and one.path == source.path for one in inner.differences):
                types = f"{describe(target.type)}, not {describe(source.type)}"
                raise self._impossible(rule, f"where MCP {self.target.revision} accepts {types}")
            self.used.add(rule.path)
            self._given |= {target.path} if source.is_required else set()
            description = f"MCP {self.target.revision} has it as {rule.destination}"
            differences += (Difference(rule.path, Kind.IGNORED, description, rule), *inner.differences)
            edit = sequence(*self._taken(source.path), inner.edit)
            is_known = theirs.field(str(rule.take[0])) is not None
            moves[Move(Apply(rule, rule.path), edit, is_known)] = source.is_required
        taken = {move.applied.rule.take[0] for move in moves if _takes_all(move)}
        for rule, *_ in found:
            if len(rule.put) == 1 and rule.put[0] not in taken and ours.field(str(rule.put[0])) is not None:
                raise self._impossible(rule, f"where MCP {self.source.revision} has another value")
        return moves

    def _impossible(self, rule: Rule, problem: str) -> BadInput:
        pointer = join("", f"{self.source.revision} -> {self.target.revision}", *rule.path)
        does = f"moves it to {rule.destination}" if rule.put else "drops it"
        message = f"the rule of {'.'.join(rule.path)} {does}, {problem}"
        return BadInput(message, pointer=pointer, fix='write a function instead: by = "package.module:function"')

    def _wanted(self, other: Field, owner: str, differences: list[Difference], *, replaces: bool) -> Members:
        """Plan a member that the target requires and the source may omit."""
        path, description = (owner, other.wire), f"MCP {self.target.revision} wants it"
        if path in self._given:
            return Members()
        if other.filled is not None and path not in self.rules:
            differences.append(Difference(path, Kind.FILL, description))
            return Members(fills=(Fill(other.wire, other.filled, replaces),))
        difference = self.difference(path, Kind.NEEDS_RULE, description)
        differences.append(difference)
        if difference.rule is not None and difference.rule.action == "give":
            return Members(fills=(Fill(other.wire, difference.rule.value, replaces),))
        refusal = self._settled(difference).edit
        if isinstance(refusal, Apply) and refusal.rule.action == "refuse":
            return Members(wants=((other.wire, refusal),))
        return Members()

    def _may_clash(self, extra: Type, theirs: Type) -> bool:
        """Return True if unnamed members of the source may have values that the target does not accept there."""
        resolved = self.target.resolve(theirs)
        return not isinstance(resolved, AnyValue) and (isinstance(extra, AnyValue) or extra != resolved)

    # --- unions -----------------------------------------------------------------------------------------------

    def _union(self, ours: Type, theirs: Type, path: Path) -> Outcome:
        """Plan the conversion of a union: each alternative becomes its counterpart in the target."""
        mine, others = alternatives(self.source, ours), alternatives(self.target, theirs)
        matching = Matching(self.source, self.target)
        if len(mine) == 1:
            match = matching.counterpart(mine[0], others)
            return self._narrower(mine[0], others, path) if match is None else self._parts(mine[0], match, path)
        matches = [matching.counterpart(one, others) or (theirs if self._limits(one, others) else None) for one in mine]
        found = [(one, self._alternative(one, match, path)) for one, match in zip(mine, matches, strict=True)]
        differences = tuple(dict.fromkeys(difference for _, outcome in found for difference in outcome.differences))
        is_open = any(kind(self.source.resolve(one)) == "any" for one in mine)  # a test of its values cannot fail
        cases: dict[Test, Edit | None] = {}
        for one, outcome in sorted(found, key=lambda pair: kind(self.source.resolve(pair[0])) == "object"):
            if outcome.edit is not None or is_open:
                rest = [other for other, done in found if not _is_same(done.edit, outcome.edit)]
                test = matching.test(one, rest)
                cases[test] = cases.get(test) or outcome.edit
        remainder = cases.pop(Test("any"), None)
        edit = Cases(tuple(Case(test, edit) for test, edit in cases.items()), remainder)
        return Outcome(edit if remainder or any(cases.values()) else None, differences)

    def _alternative(self, one: Type, match: Type | None, path: Path) -> Outcome:
        here = (*path, label(one))
        if match is not None:
            return self.outcome(one, match, here)
        description = f"MCP {self.target.revision} has no {label(one)} here"
        return self._settled(self.difference(here, Kind.NEEDS_RULE, description))


def _ruled(edit: Edit | None, settled: Outcome) -> Edit | None:
    """Return an edit with a rule for the values that it refuses; `drop` is for the object that has the value."""
    if edit is None or settled.edit is None:
        return edit if _drops(settled.differences, settled.differences[0].path) else None
    if isinstance(edit, Check):
        return replace(edit, otherwise=settled.edit)
    return Try(edit, settled.edit)


def _takes_all(move: Move) -> bool:
    """Return True if nothing of the member from which a value is taken stays where it was."""
    rule = move.applied.rule
    is_split = any(isinstance(step, Item) for step in rule.take)
    return len(rule.take) == 1 or rule.put[0] == rule.take[0] or (is_split and not move.keeps)


def _in_order(first: Outcome, second: Outcome) -> Outcome:
    return Outcome(sequence(first.edit, second.edit), (*first.differences, *second.differences))


def _each(inner: Outcome, *, values: bool = False) -> Outcome:
    return replace(inner, edit=Each(inner.edit, values)) if inner.edit is not None else inner


def _edited(path: Path, outcome: Outcome) -> Members:
    """Return the edit of a member, or its removal if the rule is `drop`."""
    edits = () if outcome.edit is None else ((path[1], outcome.edit),)
    if _drops(outcome.differences, path):
        return Members(edits, lenient=path[1:]) if edits else Members(drops=path[1:])
    return Members(edits)


def _drops(differences: Several[Difference], path: Path) -> Rule | None:
    """Return the rule that removes the member of a path, or None."""
    rules = (one.rule for one in differences if one.path == path)
    return next((rule for rule in rules if rule is not None and rule.action == "drop"), None)


def _is_same(one: Edit | None, other: Edit | None) -> bool:
    """Return True if two edits do the same, wherever their rules stand."""
    if isinstance(one, Apply) and isinstance(other, Apply):
        return replace(one.rule, path=()) == replace(other.rule, path=())
    return one == other
