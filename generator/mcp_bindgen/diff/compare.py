"""Compare matched definitions by structure: references are followed, so how a schema is cut is no change.

Each definition is compared once, and so is each inline type with the definition that was made of it. What is found is
a list of changes; what they mean for whom is decided later, when all places are known that they reach.
"""

from __future__ import annotations

from collections.abc import Set

from mcp_bindgen.protocol.model import (
    Field,
    Free,
    Map,
    Method,
    Object,
    Protocol,
    Ref,
    Sender,
    Type,
    Union,
)

from .finding import Message
from .inlining import Inlining
from .location import Change, Location, Unit, suffix
from .match import Matches
from .normalize import as_object, category
from .reach import ENVELOPE_MEMBERS, OTHER, PAYLOAD, answers, envelopes, messages
from .renames import renamed_fields
from .sides import Sides
from .union_variants import UnionVariants


class Comparer(Sides):
    """Compares two revisions whose definitions are matched."""

    def __init__(self, old: Protocol, new: Protocol, matches: Matches) -> None:
        super().__init__(old, new, matches)
        self.messages = messages(old), messages(new)
        self.envelopes = envelopes(old), envelopes(new)
        self.capabilities = _capabilities(old), _capabilities(new)
        self._pairs: list[tuple[Type, Type, Location]] = []
        self._seen: set[tuple[str, str]] = set()
        self._inlining = Inlining(self)

    def run(self) -> list[Change]:
        """Return everything that differs between matched definitions and matched methods."""
        for name_old, name_new in sorted(self.matches.new.items(), key=lambda pair: pair[1]):
            self.definition(name_old, name_new)
        news = {method.name: method for method in self.new.methods}
        for method in self.old.methods:
            if (other := news.get(method.name)) is not None and answers(method) and answers(other):
                self.results(method, other)
        while self._pairs or self._inlining:
            while self._pairs:
                self.compare(*self._pairs.pop())
            for old, new, location in self._inlining.settle():
                self.compare(old, new, location)
        self._inlining.report()
        return self.changes

    @property
    def moved(self) -> frozenset[str]:
        """The definitions that were made of inline types, or became some."""
        return self._inlining.names

    # --- where comparisons begin --------------------------------------------------------------------------------

    def definition(self, old: str, new: str) -> None:
        """Compare a definition of both revisions."""
        types = self.old.definitions[old].type, self.new.definitions[new].type
        unit = Unit(self.labels.both(old, new), Ref(old), Ref(new), {old}, {new})
        if _is_role(types[0], self.messages[0]) and _is_role(types[1], self.messages[1]):
            return  # what the methods say
        if old in self.envelopes[0] or new in self.envelopes[1]:
            unit.payload = PAYLOAD
        elif (old in self.messages[0] and new in self.messages[1]) or _are_message_like(*types):
            unit.hidden = ENVELOPE_MEMBERS
            self.envelope(unit, *types)
        self.compare(*types, Location(unit, unit.label, *types))

    def envelope(self, unit: Unit, old: Type, new: Type) -> None:
        """Note that a message says, or no longer says, that it is a JSON-RPC message."""
        before, after = ({field.wire for field in _fields(type)} & ENVELOPE_MEMBERS for type in (old, new))
        if before != after:
            rule = "envelope-inlined" if after > before else "envelope-extracted"
            location = Location(unit, unit.label, old, new, wire=False)
            self.changes.append(Change(rule, unit.label, ", ".join(sorted(before)), ", ".join(sorted(after)), location))

    def results(self, old: Method, new: Method) -> None:
        """Compare what answers a request of both revisions."""
        senders: list[Sender] = [sender for sender in old.senders if sender in new.senders]
        types = [answers(old)[0] if len(answers(old)) == 1 else Union(tuple(answers(old)))]
        types += [answers(new)[0] if len(answers(new)) == 1 else Union(tuple(answers(new)))]
        sent: dict[Sender, set[Message]] = {OTHER[sender]: {Message(new.name, new.kind, sender)} for sender in senders}
        if not senders:
            return
        label = str(Message(new.name, new.kind, senders[0]))
        unit = Unit(label, types[0], types[1], sent=sent, answers=new.definition)
        self.place(types[0], types[1], Location(unit, unit.label, types[0], types[1]))

    # --- types --------------------------------------------------------------------------------------------------

    def place(self, old: Type, new: Type, location: Location) -> None:
        """Compare what stands in a place."""
        before, after = self.olds.named(old), self.news.named(new)
        if before and after:
            if not self.matches.same(before, after) and (before, after) not in self._seen:
                self._seen.add((before, after))
                self._pairs.append((old, new, location))
        elif (before or after) and self.is_recut(old, new):
            rule, name = ("ref-extracted", after) if after else ("ref-inlined", before)
            if name in (self.matches.old if after else self.matches.new):
                self.note(rule, location, self.olds.words(old), self.news.words(new))
                self.compare(old, new, location)
            else:
                self._inlining.add(rule, str(name), old, new, location)
        else:
            self.compare(old, new, location)

    def is_recut(self, old: Type, new: Type) -> bool:
        """Return whether an inline type and a definition may be the same thing; a union of the definition is not."""
        if category(self.old.resolve(old)) != category(self.new.resolve(new)):
            return False
        ours, theirs = set(map(self.olds.key, self.olds.alternatives(old))), self.news.key(new)
        return theirs not in ours and self.olds.key(old) not in map(self.news.key, self.news.alternatives(new))

    def compare(self, old: Type, new: Type, location: Location) -> None:
        """Compare two types by what a value of them may be."""
        if self.olds.key(old) == self.news.key(new):
            return
        olds, news, common = self.cancelled(list(self.olds.alternatives(old)), list(self.news.alternatives(new)))
        if any(not isinstance(self.old.resolve(form), Object) for form in olds if isinstance(form, Ref)) or any(
            not isinstance(self.new.resolve(form), Object) for form in news if isinstance(form, Ref)
        ):
            olds = [leaf for form in olds for leaf in self.olds.opened(form)]
            news = [leaf for form in news for leaf in self.news.opened(form)]
            olds, news, more = self.cancelled(olds, news)
            common += more
        if olds or news:
            variants = UnionVariants(self, location, old, new, olds, news, common)
            variants.compare()
            for pair in variants.objects:
                self.objects(*pair)
            for pair in variants.places:
                self.place(*pair)

    def cancelled(self, olds: list[Type], news: list[Type]) -> tuple[list[Type], list[Type], list[Type]]:
        """Return the variants that only the old type has, those that only the new one has, and those that both have."""
        before = {self.olds.key(form): form for form in olds}
        after = {self.news.key(form): form for form in news}
        return (
            [form for key, form in before.items() if key not in after],
            [form for key, form in after.items() if key not in before],
            [form for key, form in after.items() if key in before],
        )

    # --- objects ------------------------------------------------------------------------------------------------

    def objects(self, old: Type, new: Type, location: Location) -> None:
        """Compare two objects, member by member; a dictionary is an object without members of its own."""
        if isinstance(old, Map) and isinstance(new, Map):
            self.place(old.values, new.values, location.below("values", "", old.values, new.values))
            return
        one, other = as_object(old), as_object(new)
        hidden = location.unit.hidden if location.above is None else frozenset[str]()
        payload = location.unit.payload if location.above is None else frozenset[str]()
        before = {field.wire: field for field in one.fields if field.wire not in hidden}
        after = {field.wire: field for field in other.fields if field.wire not in hidden}
        gone = [field for wire, field in before.items() if wire not in after]
        come = [field for wire, field in after.items() if wire not in before]
        for first, second in renamed_fields(gone, come, self.olds, self.news):
            gone.remove(first)
            come.remove(second)
            below = location.below("field", second.wire, first.type, second.type, wire=second.wire not in payload)
            parts = f"field-removed-{_required(first)}", f"field-added-{_required(second)}"
            names, types = (first.wire, second.wire), (first.type, second.type)
            self.changes.append(Change("field-renamed", below.subject, *names, below, *types, parts))
        for member in gone:
            self.member("removed", member, location, other.extra, wire=member.wire not in payload)
        for member in come:
            self.member("added", member, location, one.extra, wire=member.wire not in payload)
        for wire, was in before.items():
            if wire in after:
                now = after[wire]
                below = location.below("field", wire, was.type, now.type, wire=wire not in payload)
                if was.required != now.required:
                    rule = "field-became-required" if now.required else "field-became-optional"
                    self.note(rule, below, _required(was), _required(now), was.type, now.type)
                if was.fallback != now.fallback:
                    words = was.fallback or "nothing", now.fallback or "nothing"
                    self.note("default-changed", below, *words, was.type, now.type)
                self.place(was.type, now.type, below)
        self.extras(one.extra, other.extra, location)

    def member(self, change: str, field: Field, location: Location, others: Type | None, *, wire: bool) -> None:
        """Note a member that is gone or has come; `others` is what the side without it has for members like it."""
        below = location.below("field", field.wire, field.type, field.type, wire=wire)
        removed = change == "removed"
        normalizer, capabilities = (self.olds, self.capabilities[0]) if removed else (self.news, self.capabilities[1])
        foreign = self.news if removed else self.olds
        rule = f"field-{change}-{_required(field)}"
        if below.subject in capabilities and not field.required:
            rule = f"capability-{change}"
        parts: tuple[str, ...] = ()
        if others is None or (others != Free() and foreign.key(others) != normalizer.key(field.type)):
            parts = rule, "type-narrowed" if removed else "type-widened"  # it is not ignored there, but refused
        words = normalizer.words(field.type)
        old, new = (words, "") if removed else ("", words)
        types = (field.type, None) if removed else (None, field.type)
        self.changes.append(Change(rule, below.subject, old, new, below, types[0], types[1], parts))

    def extras(self, old: Type | None, new: Type | None, location: Location) -> None:
        """Compare what other members an object may have."""
        if old is not None and new is not None:
            self.place(old, new, location.below("values", "", old, new))
        elif new is not None:
            self.note("additional-properties-opened", location, "no other members", "other members")
        elif old is not None:
            self.note("additional-properties-closed", location, "other members", "no other members")


def _required(field: Field) -> str:
    return "required" if field.required else "optional"


def _fields(type: Type) -> tuple[Field, ...]:
    return type.fields if isinstance(type, Object) else ()


def _is_role(type: Type, messages: Set[str]) -> bool:
    """Return whether a definition lists messages: then the methods say what changed."""
    members = type.members if isinstance(type, Union) else (type,)
    return all(isinstance(member, Ref) and member.name in messages for member in members)


def _capabilities(protocol: Protocol) -> frozenset[str]:
    """Return the subjects that are capabilities."""
    return frozenset(
        f"{capability.owner.capitalize()}Capabilities"
        + "".join(suffix("field", name) for name in capability.path.split("."))
        for capability in protocol.capabilities
    )


def _are_message_like(old: Type, new: Type) -> bool:
    """Return whether both name a method and one repeats the envelope, as the bases of messages do."""
    names = [{field.wire for field in _fields(type)} for type in (old, new)]
    return all("method" in known for known in names) and any("jsonrpc" in known for known in names)
