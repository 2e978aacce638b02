"""Turn changes into findings: who sends what changed, in which messages, and what that means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from mcp_bindgen.protocol.model import Protocol, Sender

from .compare import Comparer
from .documentation import documentation_changes
from .finding import Finding, Impact, Message, Plane
from .location import Change, Unit
from .match import match
from .messages import MessageChange, is_asked_for, message_changes
from .moves import with_moves
from .reach import Reach
from .replacements import replacements
from .rules import RULES, Impacts, impacts

Found = tuple[Finding, Change | MessageChange | None]
"""A finding, and the change that a witness can be made of."""

_NONE = (Impact.NONE, Impact.NONE)


class Findings:
    """Everything that differs between two revisions.

    Args:
        old: The old revision.
        new: The new one.
    """

    def __init__(self, old: Protocol, new: Protocol) -> None:
        self.old, self.new = old, new
        self.matches = match(old, new)
        self.comparer = Comparer(old, new, self.matches)
        self.labels = self.comparer.labels
        self.reach = Reach(old), Reach(new)
        self.replacements: dict[str, str] = {}
        self.codes = {
            f"{error.definition}.{path}"
            for protocol in (old, new)
            for error in protocol.errors
            for path in ("code", "error.code")
        }

    def run(self) -> list[Found]:
        """Return all findings; one that several places lead to stands there once, with all that it reaches."""
        found: dict[str, Found] = {}
        for finding, change in self.everything():
            known = found.get(finding.fingerprint)
            found[finding.fingerprint] = (_merged(known[0], finding), known[1]) if known else (finding, change)
        return list(found.values())

    def everything(self) -> Iterator[Found]:
        """Return all findings, in the order in which they are made."""
        said = list(message_changes(self.old, self.new))
        changes = with_moves(self.comparer.run(), self.comparer.olds, self.comparer.news)
        self.replacements = replacements(self.old, self.new, said, changes, self.matches)
        yield from ((self.of_message(change), change) for change in said)
        yield from ((self.of_type(change), change) for change in changes if not self.is_code(change))
        yield from ((self.reaching(finding), None) for finding in self.of_names())
        for words in documentation_changes(self.old, self.new, self.matches, self.labels):
            plain = self.plain(words.rule, words.subject, words.old, words.new)
            finding = replace(plain, definition_old=words.definition_old, definition_new=words.definition_new)
            yield self.reaching(finding), None

    def is_code(self, change: Change) -> bool:
        """Return whether a change is that of an error's code, which is found as such."""
        return change.rule == "const-changed" and change.subject in self.codes

    # --- messages -----------------------------------------------------------------------------------------------

    def of_message(self, change: MessageChange) -> Finding:
        """Return a finding about a message or an error code."""
        senders: tuple[Sender, ...] = (change.message.sender,) if change.message else ("server",)
        levels = impacts(change.parts or [change.rule], senders)
        if change.insisted:
            levels = (levels[0], Impact.BREAKS) if change.old else (Impact.BREAKS, levels[1])
        elif change.gate:
            levels = (min(levels[0], Impact.SAFE), min(levels[1], Impact.SAFE))
        return Finding(
            rule=change.rule,
            subject=change.subject,
            group=change.group,
            plane=Plane.WIRE,
            old_client=levels[0],
            new_client=levels[1],
            old=change.old,
            new=change.new,
            reaches=(change.message,) if change.message else (),
            hint=self.replacements.get(change.subject, "") or _hint(change.rule, change.gate),
            gate=change.gate,
            definition_old=change.old_method.definition if change.old_method else "",
            definition_new=change.new_method.definition if change.new_method else "",
        )

    # --- types --------------------------------------------------------------------------------------------------

    def of_type(self, change: Change) -> Finding:
        """Return a finding about the structure of a definition, or of what answers a request."""
        rule, unit = RULES[change.rule], change.location.unit
        known, meets = self.sent(unit)
        on_wire = unit.wire and change.location.wire and rule.plane is Plane.WIRE
        sent: Mapping[Sender, set[Message]] = known if on_wire else {}
        levels: Impacts = impacts(change.parts or [change.rule], sent)
        gate = self.gate(change)
        if change.confused or gate or not meets:
            levels = (min(levels[0], Impact.RISKY), min(levels[1], Impact.RISKY))
        return Finding(
            rule=change.rule,
            subject=change.subject,
            group=self.labels.group(change.subject),
            plane=rule.plane if sent or rule.plane is not Plane.WIRE else Plane.SOURCE,
            old_client=levels[0],
            new_client=levels[1],
            old=change.old,
            new=change.new,
            reaches=tuple(sorted({message for messages in known.values() for message in messages})),
            hint=_hint(change.rule, gate),
            gate=gate,
            definition_old=min(unit.olds, default=""),
            definition_new=min(unit.news, default=""),
        )

    def gate(self, change: Change) -> str:
        """Return what has to be asked for before it is sent."""
        method = change.location.unit.answers
        protocol, form = (
            (self.old, change.old_type) if change.rule == "union-member-removed" else (self.new, change.new_type)
        )
        if method and change.rule.startswith("union-member-") and is_asked_for(protocol, method, form):
            return "params that ask for it"
        return ""

    def sent(self, unit: Unit) -> tuple[Mapping[Sender, set[Message]], bool]:
        """Return who sends a unit in both revisions, and in which messages: those of both, else those of either.

        Also says whether a message that has it can meet a side of the other revision at all.
        """
        if unit.sent is not None:
            return unit.sent, True
        old, new = self.side(unit, 0, frozenset()), self.side(unit, 1, frozenset())
        met: dict[Sender, set[Message]] = {}
        apart: dict[Sender, set[Message]] = {}
        for sender, messages in old.items():
            if sender in new:
                shared, either = messages & new[sender], messages | new[sender]
                (met if shared or not either else apart)[sender] = shared or either
        return met or apart, bool(met)

    def side(self, unit: Unit, side: int, above: frozenset[int]) -> dict[Sender, set[Message]]:
        """Return the same in one of the revisions."""
        found: dict[Sender, set[Message]] = {}
        reach, names = self.reach[side], unit.news if side else unit.olds
        for name in names:
            for sender in reach.senders(name):
                found.setdefault(sender, set()).update(reach.messages(name, sender))
        for other in unit.within_new if side else unit.within_old:
            if id(other) not in above:
                for sender, messages in self.side(other, side, above | {id(unit)}).items():
                    found.setdefault(sender, set()).update(messages)
        return found

    # --- names --------------------------------------------------------------------------------------------------

    def of_names(self) -> Iterator[Finding]:
        """Find definitions that came, went, were renamed, or whose name means something else."""
        matches, moved = self.matches, self.comparer.moved | self.matches.redefined
        for a, b in matches.new.items():
            if a != b:
                yield replace(self.plain("definition-renamed", a, a, b), definition_old=a, definition_new=b)
        for name in matches.redefined:
            old, new = self.words(self.old, name), self.words(self.new, name)
            finding = self.plain("definition-redefined", name, old, new)
            yield replace(finding, definition_old=name, definition_new=name)
        for name, definition in self.old.definitions.items():
            if not definition.hoisted and name not in matches.new and name not in moved:
                finding = self.plain("definition-removed", name, self.words(self.old, name), "")
                yield replace(finding, definition_old=name)
        for name, definition in self.new.definitions.items():
            if not definition.hoisted and name not in matches.old and name not in moved:
                finding = self.plain("definition-added", name, "", self.words(self.new, name))
                yield replace(finding, definition_new=name)

    def words(self, protocol: Protocol, name: str) -> str:
        """Describe a definition in a few words."""
        normalizer = self.comparer.olds if protocol is self.old else self.comparer.news
        return normalizer.words(protocol.definitions[name].type)

    def reaching(self, finding: Finding) -> Finding:
        """Return `finding` with the messages that its definitions reach."""
        found: set[Message] = set()
        for reach, name in zip(self.reach, (finding.definition_old, finding.definition_new), strict=True):
            for sender in reach.senders(name):
                found |= reach.messages(name, sender)
        return replace(finding, reaches=tuple(sorted(found)))

    def plain(self, rule: str, subject: str, old: str, new: str) -> Finding:
        """Return a finding that the wire does not show."""
        return Finding(
            rule, subject, self.labels.group(subject), RULES[rule].plane, *_NONE, old, new, hint=RULES[rule].hint
        )


def _hint(rule: str, gate: str) -> str:
    if not gate:
        return RULES[rule].hint
    if "." in gate:
        return f"Matters only where `{gate}` is declared, which a side without it never does."
    return "Comes only where the params ask for it: ask only a side that has it."


def _merged(one: Finding, other: Finding) -> Finding:
    """Return the same finding from two places: the worse of both, and all that it reaches."""
    planes = list(Plane)
    return replace(
        one,
        plane=min(one.plane, other.plane, key=planes.index),
        old_client=max(one.old_client, other.old_client),
        new_client=max(one.new_client, other.new_client),
        reaches=tuple(sorted({*one.reaches, *other.reaches})),
    )
