"""Compare two revisions: two protocol models become findings and verdicts.

Changes become findings by their affected messages, impacts and hints.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from operator import itemgetter
from types import MappingProxyType

from mcp_bindgen.ir.model import Definition, Field, Protocol, Ref, Sender, Type, flattened, references

from .compare import Comparer
from .finding import RULES, Comparison, Finding, Impact, Message, Plane, Severity, impacts
from .grouping import arranged, hint_of
from .location import HOW, NEW, OLD, SIDES, Change, Unit, around, only, suffix
from .match import match
from .messages import OPENINGS, MessageChange, is_asked_for, message_changes
from .moves import with_moves
from .reach import Reach, sent
from .replacements import replacements
from .verdict import verdicts

Described = Definition | Field
Gates = Mapping[tuple[str, ...], str]
Found = tuple[Finding, Change | MessageChange | None]
"""Finding, and the change from which a witness can be made."""


def compare(old: Protocol, new: Protocol, *, evidence: bool = True, gates: Gates = MappingProxyType({})) -> Comparison:
    """Find the differences between two revisions, and their impact on old and new peers.

    Args:
        old: The old revision.
        new: The new revision.
        evidence: True to add a witness to each finding on the wire, or the reason for its absence.
        gates: Path of a variant in `bridges.toml` -> capability without which no peer sends it, as from `source.gates`.
    """
    search = Findings(old, new, gates)
    found = search.run()
    proved = _witnessed(old, new, found) if evidence else (finding for finding, _ in found)
    requests = {one for one in sent(old).keys() & sent(new).keys() if one.sender == "client" and one.kind == "request"}
    findings = arranged(proved, {one for one in requests if one.method not in OPENINGS}, search.depth)
    old_client, new_client = verdicts(old, new, findings)
    return Comparison(old, new, old_client, new_client, findings)


def _witnessed(old: Protocol, new: Protocol, found: Iterable[Found]) -> Iterator[Finding]:
    from .witness import Witnesses  # the validator takes time to load

    witnesses = Witnesses(old, new)
    for finding, change in found:
        known = change if finding.plane is Plane.WIRE else None
        yield witnesses.witnessed(finding, known) if known is not None else finding


class Findings:
    """All differences between two revisions.

    Args:
        old: The old revision.
        new: The new revision.
        gates: As for `compare`.
    """

    def __init__(self, old: Protocol, new: Protocol, gates: Gates) -> None:
        self.protocols, self.gates = (old, new), gates
        self.matches = match(old, new)
        self.comparer = Comparer(old, new, self.matches)
        self.subjects = self.comparer.subjects
        self.reach = Reach(old), Reach(new)
        self.replacements: dict[str, str] = {}
        self.known = {f"{error.definition}.{path}" for error in new.errors for path in ("code", "error.code")}
        self.known |= {f"{method.definition}.method" for method in new.methods}

    def run(self) -> list[Found]:
        """Return all findings; equal findings from several places become one, with all affected messages."""
        found: dict[str, Found] = {}
        for finding, change in self.everything():
            known = found.get(finding.fingerprint)
            found[finding.fingerprint] = (_merged(known[0], finding), known[1]) if known else (finding, change)
        return [*found.values(), *((finding, None) for finding in self.of_extensions(one for one, _ in found.values()))]

    def of_extensions(self, found: Iterable[Finding]) -> Iterator[Finding]:
        """Find breaking changes of extensions that keep their id: a breaking change needs a new id (SEP-2133)."""
        broken = [finding for finding in found if finding.severity is Severity.BREAKING]
        old, new = ({one.id: one for one in protocol.extensions} for protocol in self.protocols)
        for id in sorted(old.keys() & new.keys()):
            own = [finding for finding in broken if id in self.origins(finding)]
            if own and old[id].version != new[id].version:
                yield Finding(
                    rule="extension-broken",
                    subject=id,
                    group=id,
                    plane=Plane.WIRE,
                    old_client=max(finding.old_client for finding in own),
                    new_client=max(finding.new_client for finding in own),
                    old=old[id].version,
                    new=new[id].version,
                    reaches=tuple(sorted({message for finding in own for message in finding.reaches})),
                    hint=RULES["extension-broken"].hint,
                    unwitnessed="it sums up others",
                )

    def origins(self, finding: Finding) -> set[str]:
        """Return the ids of the extensions of a finding."""
        reached = {message.method for message in finding.reaches}
        names = zip(self.protocols, (finding.definition_old, finding.definition_new), strict=True)
        owners = {protocol.definitions[name].origin for protocol, name in names if name in protocol.definitions}
        return owners | {one.origin for side in self.protocols for one in side.methods if one.name in reached}

    def depth(self, finding: Finding) -> int:
        """Return the number of references between the nearest message and the definition of a finding."""
        names = finding.definition_old, finding.definition_new
        return max(reach.depths.get(name, 0) for reach, name in zip(self.reach, names, strict=True))

    def everything(self) -> Iterator[Found]:
        """Return all findings, unsorted."""
        messages = list(message_changes(*self.protocols))
        changes = with_moves(self.comparer.run(), self.comparer.forms)
        self.replacements = replacements(self.protocols, messages, changes, self.matches)
        later = {error.name: error for error in self.protocols[NEW].errors}
        for error in self.protocols[OLD].errors:
            if instead := later.get(error.instead):
                self.replacements[f"{error.code} {error.name}"] = f"`{instead.code} {instead.name}` takes its place."
        changes = [change.in_place or change for change in changes]
        yield from ((self.of_message(change), change) for change in messages)
        yield from ((self.of_type(change), change) for change in changes if not self.is_known(change))
        yield from ((finding, None) for finding in self.of_names())
        yield from ((finding, None) for finding in self.of_descriptions())

    def is_known(self, change: Change) -> bool:
        """Return whether a change is a renumbered error or a renamed method, for which there is a finding already."""
        return change.rule == "const-changed" and change.subject in self.known

    # --- messages -----------------------------------------------------------------------------------------------

    def of_message(self, change: MessageChange) -> Finding:
        """Return a finding about a message or an error code."""
        old_client, new_client = impacts(
            change.parts or [change.rule], [change.message.sender if change.message else "server"]
        )
        if change.insisted:
            is_old = change.methods[OLD] is not None
            old_client, new_client = (old_client, Impact.BREAKS) if is_old else (Impact.BREAKS, new_client)
        elif change.gate:
            old_client, new_client = min(old_client, Impact.SAFE), min(new_client, Impact.SAFE)
        was, now = (method.definition if method is not None else "" for method in change.methods)
        reaches, hint = (change.message,) if change.message else (), self.replacements.get(change.subject, "")
        head = change.rule, change.subject, change.group, Plane.WIRE, old_client, new_client
        return self.found(Finding(*head, *change.descriptions, reaches, hint, was, now, gate=change.gate))

    # --- types --------------------------------------------------------------------------------------------------

    def of_type(self, change: Change) -> Finding:
        """Return a finding about the structure of a definition or of a result."""
        rule, unit = RULES[change.rule], change.location.unit
        known, meets = self.sent(unit)
        on_wire = unit.wire and change.location.wire and rule.plane is Plane.WIRE
        sent: Mapping[Sender, set[Message]] = known if on_wire else {}
        both = list(impacts(change.parts or [change.rule], sent))
        if on_wire and change.rule == "field-removed-optional":  # the reader of a result may rely on it
            for sender in self.senders_of_results(unit):
                side = OLD if sender == "server" else NEW
                both[side] = max(both[side], Impact.RISKY)
        gate = self.gate(change)
        most = Impact.SAFE if "." in gate else Impact.RISKY if change.confused or gate or not meets else Impact.BREAKS
        plane = rule.plane if sent or rule.plane is not Plane.WIRE else Plane.SOURCE
        was, now = (min(names, default="") for names in unit.names)
        old_client, new_client = (min(impact, most) for impact in both)
        head = change.rule, change.subject, "", plane, old_client, new_client
        reaches = tuple(set[Message]().union(*known.values()))
        return self.found(Finding(*head, *change.descriptions, reaches, "", was, now, gate=gate))

    def gate(self, change: Change) -> str:
        """Return what the other side must declare or request before it meets a variant: a capability, or params.

        A capability that both revisions have makes no difference between them.
        """
        if not change.rule.startswith("union-member-"):
            return ""
        side = OLD if change.rule == "union-member-removed" else NEW
        protocol, answered = self.protocols[side], change.location.unit.answers
        known = {capability.name for capability in self.protocols[1 - side].capabilities}
        needed = [*self.derived(change, side), self.stated(change, side)]
        asked = answered and is_asked_for(protocol, answered, change.types[side])
        return next((one for one in needed if one and one not in known), "params that ask for it" if asked else "")

    def derived(self, change: Change, side: int) -> Iterator[str]:
        """Yield the capabilities that a variant needs by facts about methods: as an answer, or as the params."""
        protocol, form = self.protocols[side], change.types[side]
        users = {message.method for messages in self.side(change.location.unit, side).values() for message in messages}
        for method in protocol.methods:
            needed = method.capability(method.senders[0])
            if method.carrier == "embedded" and form in method.answers and needed is not None:
                yield needed
            if users <= {method.name} and form in flattened([protocol.resolve(method.params)] if method.params else []):
                fields = [(need, protocol.field_of(form, need.member)) for need in method.needs]
                yield from (one.capability for one, field in fields if field and field.constant in one.values)

    def stated(self, change: Change, side: int) -> str:
        """Return the capability that rules name for all places of a variant.

        The side that has it receives the variant, or answers with it to requests that need the capability.
        """
        found = {self.gates.get(path, "") for path in self.paths(change, side)}
        capability = found.pop() if len(found) == 1 else ""
        methods = self.protocols[side].methods
        asking = {method.name for method in methods for need in method.needs if need.capability == capability}
        senders = self.side(change.location.unit, side).items()
        own = [one for sender, messages in senders if capability.startswith(f"{sender}.") for one in messages]
        is_asked = all(not capability.startswith(f"{one.sender}.") and one.method in asking for one in own)
        return capability if is_asked else ""

    def paths(self, change: Change, side: int) -> Iterator[tuple[str, ...]]:
        """Yield the paths of a variant in files of rules; a union stands in the members that refer to it."""
        protocol, unit, path = self.protocols[side], change.location.unit, change.location.path
        names, methods = unit.names[side], {method.definition: method.name for method in protocol.methods}
        if unit.within[side]:
            return  # the unit also stands in places without a definition
        if unit.answers:
            yield methods[unit.answers], "result", *path
        elif path[1:]:
            yield from ((methods.get(name, name), *path) for name in names)
        else:
            for owner, definition in protocol.definitions.items():
                parts = [(field.wire, field.type) for field in protocol.fields_of(definition.type)]
                for step, type in parts or [("", definition.type)]:
                    if not names.isdisjoint(references(type)):
                        yield methods.get(owner, owner), step, *path

    def sent(self, unit: Unit) -> tuple[Mapping[Sender, set[Message]], bool]:
        """Return the senders of a unit and their messages: the common ones, else of either revision.

        Also return whether a message with the unit can reach a peer of the other revision.
        """
        if unit.sent is not None:
            return unit.sent, True
        old, new = (self.side(unit, side) for side in SIDES)
        met: dict[Sender, set[Message]] = {}
        apart: dict[Sender, set[Message]] = {}
        for sender in old.keys() & new.keys():
            shared, either = old[sender] & new[sender], old[sender] | new[sender]
            (met if shared or not either else apart)[sender] = shared or either
        return met or apart, bool(met)

    def side(self, unit: Unit, side: int) -> dict[Sender, set[Message]]:
        """Return senders and messages of a unit, and of all units that contain it, in one revision."""
        found: dict[Sender, set[Message]] = {}
        for one in around(unit, side):
            for part in (one.sent or {}, *(self.reach[side].of(name) for name in one.names[side])):
                for sender, messages in part.items():
                    found.setdefault(sender, set()).update(messages)
        return found

    def senders_of_results(self, unit: Unit) -> set[Sender]:
        """Return the senders of the results of the old revision that contain a unit."""
        units = around(unit, OLD)
        whole: set[Sender] = {sender for one in units if one.answers for sender in one.sent or {}}
        names = {name for one in units for name in one.names[OLD]}
        parts: set[Sender] = {sender for sender, known in self.reach[OLD].results.items() if known & names}
        return whole | parts

    # --- names --------------------------------------------------------------------------------------------------

    def of_names(self) -> Iterator[Finding]:
        """Find added, removed, renamed and redefined definitions."""
        matches = self.matches
        for a, b in matches.new.items():
            if a != b:
                yield self.off_wire("definition-renamed", a, a, b, a, b)
        for name in matches.redefined:
            descriptions = self.describe(OLD, name), self.describe(NEW, name)
            yield self.off_wire("definition-redefined", name, *descriptions, name, name)
        for side, known in enumerate((matches.new, matches.old)):
            for name, definition in self.protocols[side].definitions.items():
                if not (definition.inline or name in known or name in self.comparer.moved | matches.redefined):
                    descriptions = only(side, self.describe(side, name), "")
                    yield self.off_wire(f"definition-{HOW[side]}", name, *descriptions, *only(side, name, ""))

    def of_descriptions(self) -> Iterator[Finding]:
        """Find changed descriptions and deprecations of definitions and members that both revisions have.

        Nothing is found between a revision of ours and an external file: their descriptions always differ, and only our
        revisions have dated deprecations.
        """
        old, new = self.protocols
        for a, b in sorted(self.matches.new.items(), key=itemgetter(NEW)) if old.origin == new.origin else ():
            was, now = old.definitions[a], new.definitions[b]
            label = self.subjects.both(a, b)
            for subject, before, after in ((label, was, now), *self.described(was.type, now.type, label)):
                if bool(before.deprecated) != bool(after.deprecated):
                    rule = "deprecated" if after.deprecated else "undeprecated"
                    about = self.subjects.message(b) if subject == label else ""
                    yield self.off_wire(rule, about or subject, before.deprecated, after.deprecated, a, b)
                if before.doc != after.doc:
                    yield self.off_wire("description-changed", subject, before.doc, after.doc, a, b)

    def described(self, old: Type, new: Type, label: str) -> Iterator[tuple[str, Described, Described]]:
        """Yield subject, old and new state of members, also of objects that are inline in one of the revisions."""
        one, other = (
            None if isinstance(type, Ref) and type.name not in self.comparer.moved else protocol.object_of(type)
            for protocol, type in zip(self.protocols, map(Protocol.inline, self.protocols, (old, new)), strict=True)
        )
        for was in one.fields if one and other else ():
            if other and (now := other.field(was.wire)):
                subject = label + suffix("field", was.wire)
                yield subject, was, now
                yield from self.described(was.type, now.type, subject)

    def describe(self, side: int, name: str) -> str:
        """Return a short description of a definition."""
        return self.comparer.forms[side].describe(self.protocols[side].definitions[name].type)

    def off_wire(self, rule: str, subject: str, old: str, new: str, old_name: str, new_name: str) -> Finding:
        """Return a finding off the wire, with the messages that contain its definitions."""
        senders = self.reach[OLD].of(old_name), self.reach[NEW].of(new_name)
        reaches = tuple({message for known in senders for messages in known.values() for message in messages})
        head = rule, subject, "", RULES[rule].plane, Impact.NONE, Impact.NONE
        return self.found(Finding(*head, old, new, reaches, "", old_name, new_name))

    def found(self, finding: Finding) -> Finding:
        """Return a finding in its group, with what to do about it."""
        group = "errors" if finding.rule.startswith("error-") else self.subjects.group(finding.subject)
        hint = finding.hint or hint_of(finding.gate) or RULES[finding.rule].hint
        return replace(finding, group=group, hint=hint, reaches=tuple(sorted(finding.reaches)))


def _merged(one: Finding, other: Finding) -> Finding:
    """Return one finding for two places: the worse impact, and all affected messages."""
    planes = list(Plane)
    return replace(
        one,
        plane=min(one.plane, other.plane, key=planes.index),
        old_client=max(one.old_client, other.old_client),
        new_client=max(one.new_client, other.new_client),
        reaches=tuple(sorted({*one.reaches, *other.reaches})),
    )
