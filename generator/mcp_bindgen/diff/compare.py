"""Compare matched definitions by structure. References are followed: splitting a definition is not a change.

Each definition is compared once, and so is each inline type that became a definition. The result is a list of changes.
Their impacts are determined later, when all affected messages are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace
from itertools import chain
from operator import itemgetter

from mcp_bindgen.ir import model as ir
from mcp_bindgen.ir.assignability import as_object

from .finding import Message
from .inlining import Inlining
from .location import HOW, NEW, OLD, SIDES, Change, Location, Unit, only, suffix
from .match import Matches
from .moves import renamed_fields
from .normalize import category
from .reach import ENVELOPE_MEMBERS, PAYLOAD, envelopes, messages
from .sides import Sides
from .union_variants import UnionVariants


class Comparer(Sides):
    """Comparison of two revisions with matched definitions."""

    def __init__(self, old: ir.Protocol, new: ir.Protocol, matches: Matches) -> None:
        super().__init__(old, new, matches)
        self._messages = messages(old), messages(new)
        self._envelopes = envelopes(old), envelopes(new)
        self._capabilities = _capabilities(old), _capabilities(new)
        self._places: list[Location] = []
        self._replaced: dict[tuple[str, str], Unit] = {}
        self._inlining = Inlining(self)

    def run(self) -> list[Change]:
        """Return the changes of matched definitions and matched methods."""
        for pair in sorted(self.matches.new.items(), key=itemgetter(NEW)):
            self.definition(*pair)
        old, new = self.protocols
        news = {method.name: method for method in new.methods}
        for method in old.methods:
            if (other := news.get(method.name)) is not None and method.answers and other.answers:
                self.results(method, other)
        while self._places or self._inlining:
            while self._places:
                self.compare(self._places.pop())
            for location in self._inlining.settle():
                self.compare(location)
        self._inlining.report()
        return self.changes

    @property
    def moved(self) -> frozenset[str]:
        """Definitions that replaced inline types, or that inline types replaced."""
        return self._inlining.names

    # --- where comparisons begin --------------------------------------------------------------------------------

    def definition(self, old: str, new: str) -> None:
        """Compare a definition of both revisions."""
        names = old, new
        before, after = (protocol.definitions[name].type for protocol, name in zip(self.protocols, names, strict=True))
        if _is_role(before, self._messages[OLD]) and _is_role(after, self._messages[NEW]):
            return  # role unions: the methods show the changes
        unit = Unit(self.subjects.both(old, new), (ir.Ref(old), ir.Ref(new)), ({old}, {new}))
        location = Location(unit, unit.label, (before, after))
        if any(names[side] in self._envelopes[side] for side in SIDES):
            unit.payload = PAYLOAD
        elif all(names[side] in self._messages[side] for side in SIDES) or _are_message_like(before, after):
            unit.hidden = ENVELOPE_MEMBERS
            self.envelope(unit, before, after)
        self.compare(location)

    def envelope(self, unit: Unit, old: ir.Type, new: ir.Type) -> None:
        """Note that a message repeats, or no longer repeats, the members of the JSON-RPC envelope."""
        before, after = ({field.wire for field in _fields(type)} & ENVELOPE_MEMBERS for type in (old, new))
        if before != after:
            rule = "envelope-inlined" if after > before else "envelope-extracted"
            location = Location(unit, unit.label, (old, new), wire=False)
            self.changes.append(Change(rule, location, (", ".join(sorted(before)), ", ".join(sorted(after)))))

    def results(self, old: ir.Method, new: ir.Method) -> None:
        """Compare the results of a request of both revisions."""
        senders: list[ir.Sender] = [sender for sender in old.senders if sender in new.senders]
        if senders:
            sent: dict[ir.Sender, set[Message]] = {
                ir.OTHER_SIDE[sender]: {Message.of(new, sender)} for sender in senders
            }
            types = _result(old), _result(new)
            label = f"{ir.OTHER_SIDE[senders[0]]}->{senders[0]} result {new.name}"
            unit = Unit(label, types, sent=sent, answers=new.definition)
            self.place(Location(unit, unit.label, types))

    # --- types --------------------------------------------------------------------------------------------------

    def place(self, location: Location) -> None:
        """Compare the types in a place."""
        before, after = (forms.named(type) for forms, type in zip(self.forms, location.types, strict=True))
        if before and after:
            if not self.matches.same(before, after):
                self.replaced((before, after), location)
        elif (before or after) and self.is_recut(*location.types):
            rule, name = ("ref-extracted", after) if after else ("ref-inlined", before)
            if name in (self.matches.old if after else self.matches.new):
                self.changes.append(Change(rule, location, self.describe(location)))
                self.compare(location)
            else:
                self._inlining.add(rule, str(name), location)
        else:
            self.compare(location)

    def replaced(self, pair: tuple[str, str], location: Location) -> None:
        """Compare a definition with another one that takes its place, once for all places."""
        place, unit = location.unit, self._replaced.get(pair)
        if unit is None:
            unit = self._replaced[pair] = replace(place, sent=None, within=([], []), wire=False)
            self._places.append(replace(location, unit=unit, wire=True))
        for within in unit.within:
            within.append(place)
        unit.wire = unit.wire or (place.wire and location.wire)
        unit.answers = unit.answers if unit.answers == place.answers else ""

    def is_recut(self, old: ir.Type, new: ir.Type) -> bool:
        """Return whether an inline type may equal a definition; a union with the definition does not."""
        olds, news = self.forms
        if category(olds.protocol.resolve(old)) != category(news.protocol.resolve(new)):
            return False
        ours, theirs = set(map(olds.key, olds.alternatives(old))), set(map(news.key, news.alternatives(new)))
        return news.key(new) not in ours and olds.key(old) not in theirs

    def compare(self, location: Location) -> None:
        """Compare two types by their variants."""
        if self.forms[OLD].key(location.types[OLD]) == self.forms[NEW].key(location.types[NEW]):
            return
        old, new = (forms.alternatives(type) for forms, type in zip(self.forms, location.types, strict=True))
        olds, news, common = self.cancelled(old, new)
        old, new = (chain.from_iterable(map(self.forms[side].opened, (olds, news)[side])) for side in SIDES)
        olds, news, more = self.cancelled(old, new)
        common += more
        if olds or news:
            variants = UnionVariants(self, location, olds, news, common)
            variants.compare()
            for pair in variants.objects:
                self.objects(*pair, location)
            for place in variants.places:
                self.place(place)

    def cancelled(
        self, olds: Iterable[ir.Type], news: Iterable[ir.Type]
    ) -> tuple[list[ir.Type], list[ir.Type], list[ir.Type]]:
        """Return the variants of the old type only, of the new type only, and of both types."""
        before = {self.forms[OLD].key(form): form for form in olds}
        after = {self.forms[NEW].key(form): form for form in news}
        return (
            [form for key, form in before.items() if key not in after],
            [form for key, form in after.items() if key not in before],
            [form for key, form in after.items() if key in before],
        )

    # --- objects ------------------------------------------------------------------------------------------------

    def objects(self, old: ir.Type, new: ir.Type, location: Location) -> None:
        """Compare two objects, member by member."""
        if isinstance(old, ir.Map) and isinstance(new, ir.Map):
            self.place(location.below("values", "", old.values, new.values))
            return
        objects = as_object(old), as_object(new)
        unit, is_top = location.unit, location.above is None
        hidden, payload = (unit.hidden, unit.payload) if is_top else (frozenset[str](), frozenset[str]())
        before, after = ({field.wire: field for field in one.fields if field.wire not in hidden} for one in objects)
        gone = [field for wire, field in before.items() if wire not in after]
        come = [field for wire, field in after.items() if wire not in before]
        for was, now in renamed_fields(gone, come, self.forms):
            gone.remove(was)
            come.remove(now)
            below = location.below("field", now.wire, was.type, now.type, wire=now.wire not in payload)
            parts = "field-renamed", f"field-removed-{_required(was)}", f"field-added-{_required(now)}"
            self.changes.append(Change("field-renamed", below, (was.wire, now.wire), below.types, parts))
        for side, members in enumerate((gone, come)):
            for member in members:
                below = location.below("field", member.wire, member.type, member.type, wire=member.wire not in payload)
                self.member(side, member, below, objects)
        for wire, was in before.items():
            if wire in after:
                now = after[wire]
                below = location.below("field", wire, was.type, now.type, wire=wire not in payload)
                if was.required != now.required:
                    descriptions = _required(was), _required(now)
                    self.changes.append(Change(f"field-became-{descriptions[NEW]}", below, descriptions, below.types))
                if was.fallback != now.fallback:
                    descriptions = was.fallback or "nothing", now.fallback or "nothing"
                    self.changes.append(Change("default-changed", below, descriptions, below.types))
                self.place(below)
        self.extras(objects[OLD].extra, objects[NEW].extra, location)

    def member(self, side: int, field: ir.Field, location: Location, objects: tuple[ir.Object, ir.Object]) -> None:
        """Note a member that only one of the objects names."""
        form, foreign = self.forms[side], self.forms[1 - side]
        others = objects[1 - side].extra  # the type of unnamed members in the other object
        is_capability = location.subject in self._capabilities[side] and not field.required
        rule = f"capability-{HOW[side]}" if is_capability else f"field-{HOW[side]}-{_required(field)}"
        parts: tuple[str, ...] = ()
        if others is None or (others != ir.AnyValue() and foreign.key(others) != form.key(field.type)):
            parts = rule, ("type-narrowed", "type-widened")[side]  # the other object refuses it
        descriptions, types = only(side, form.describe(field.type), ""), only(side, field.type, None)
        change = Change(rule, location, descriptions, types, parts)
        in_place = None if is_capability else self.opened(side, field, change, objects)
        self.changes.append(replace(change, in_place=in_place))

    def opened(self, side: int, field: ir.Field, change: Change, objects: tuple[ir.Object, ir.Object]) -> Change | None:
        """Return the change for a member that the object of the other side accepts without naming it, if it does.

        The other side must state that it accepts such members; keys with a prefix are reserved and do not count. If
        both objects are open, a required member is still an addition or a removal, and an optional member has the
        impacts of an addition or a removal.
        """
        own, others = objects[side].extra, objects[1 - side].extra
        was_open = own is not None and not ir.is_implied(own)
        if others is None or ir.is_implied(others) or "/" in field.wire or (field.required and was_open):
            return None
        if not self.accepting[1 - side].accepts(others, field.type):
            return None
        rule, presence = (("field-opened", "field-became-optional"), ("field-closed", "field-became-required"))[side]
        types = (field.type, others) if side == OLD else (others, field.type)
        descriptions = [forms.describe(type) for forms, type in zip(self.forms, types, strict=True)]
        descriptions[side] += ", required" if field.required else ""
        is_same = not field.required and self.accepting[side].accepts(field.type, others)
        location = change.location  # on the wire, only a different type is visible
        place = replace(location, types=types, wire=location.wire and not is_same)
        parts = (rule, presence) if field.required else (change.rule,) if was_open else ()
        return Change(rule, place, (descriptions[OLD], descriptions[NEW]), types, parts)

    def extras(self, old: ir.Type | None, new: ir.Type | None, location: Location) -> None:
        """Compare the types of unnamed members."""
        if old is not None and new is not None:
            self.place(location.below("values", "", old, new))
        elif new is not None:
            self.changes.append(Change("additional-properties-opened", location, ("no other members", "other members")))
        elif old is not None:
            self.changes.append(Change("additional-properties-closed", location, ("other members", "no other members")))


def _required(field: ir.Field) -> str:
    return "required" if field.required else "optional"


def _fields(type: ir.Type) -> tuple[ir.Field, ...]:
    return type.fields if isinstance(type, ir.Object) else ()


def _result(method: ir.Method) -> ir.Type:
    """Return the results of a request as one type."""
    found = method.answers
    return found[0] if len(found) == 1 else ir.Union(found)


def _is_role(type: ir.Type, messages: Set[str]) -> bool:
    """Return whether a definition is a role union: then the methods show the changes."""
    members = type.members if isinstance(type, ir.Union) else (type,)
    return all(isinstance(member, ir.Ref) and member.name in messages for member in members)


def _capabilities(protocol: ir.Protocol) -> frozenset[str]:
    """Return the subjects that are capabilities."""
    return frozenset(
        f"{capability.owner.capitalize()}Capabilities"
        + "".join(suffix("field", name) for name in capability.path.split("."))
        for capability in protocol.capabilities
    )


def _are_message_like(old: ir.Type, new: ir.Type) -> bool:
    """Return whether both name a method and one repeats the envelope, as the bases of messages do."""
    names = [{field.wire for field in _fields(type)} for type in (old, new)]
    return all("method" in known for known in names) and any("jsonrpc" in known for known in names)
