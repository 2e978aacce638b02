"""Impact of changes on compatibility: the table of impacts, and the sender of each message."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcp_bindgen.diff.finding import Impact, Message
from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import Array, Map, Object, Sender, Type, Union, references

_CELLS = """
safe ignored: field-added-optional capability-added
breaks ignored: field-added-required
ignored safe: field-removed-optional
ignored breaks: field-removed-required
breaks safe: field-became-required type-narrowed became-non-nullable number-to-integer enum-value-removed const-added
breaks safe: union-member-removed constraint-tightened additional-properties-closed
safe breaks: field-became-optional type-widened became-nullable integer-to-number enum-value-added const-removed
safe breaks: union-member-added constraint-loosened additional-properties-opened
breaks breaks: type-changed const-changed
risky risky: pattern-changed format-changed default-changed capability-removed
"""
CELLS: dict[str, tuple[Impact, Impact]] = {
    rule: (Impact[old.upper()], Impact[new.upper()])
    for old, new, rules in re.findall(r"(\w+) (\w+): (.+)", _CELLS)
    for rule in rules.split()
}
"""Impact of a change in a message from the client: on old client with new server, and on new client with old server."""


class Reach:
    """Messages that contain each definition, and the senders of these messages.

    Args:
        protocols: Protocol models.
    """

    def __init__(self, *protocols: Protocol) -> None:
        self.senders: dict[str, set[Sender]] = {}
        self.messages: dict[str, set[Message]] = {}
        self.loose: set[str] = set()
        self.results: set[tuple[str, Sender]] = set()
        for protocol in protocols:
            self._read(protocol)

    def _read(self, protocol: Protocol) -> None:
        self.loose |= _loose(protocol)
        errors = [error.definition for error in protocol.errors if error.definition]
        self._add(protocol, errors, "server", None)  # the rules assume that servers send errors
        for method in protocol.methods:
            if method.carrier == "embedded":
                continue  # reached through the message that embeds it
            answers = [answer for answer in (method.result, *method.alternatives) if answer is not None]
            for sender in method.senders:
                known = Message(method.name, method.kind, sender)
                self._add(protocol, [method.definition], sender, known)
                other: Sender = "server" if sender == "client" else "client"
                found = [name for answer in answers for name in references(answer)]
                self._add(protocol, found, other, known)
                messages = {one.definition for one in protocol.methods}
                self.results |= {
                    (name, other) for name in protocol.reach(found, protocol.definitions.keys() - messages)
                }

    def _add(self, protocol: Protocol, names: list[str], sender: Sender, known: Message | None) -> None:
        seen: set[str] = set()
        while names:
            name = names.pop()
            if name not in seen:
                seen.add(name)
                self.senders.setdefault(name, set()).add(sender)
                self.messages.setdefault(name, set()).update([] if known is None else [known])
                names.extend(references(protocol.definitions[name].type))

    def impacts(self, definition: str, rule: str) -> tuple[Impact, Impact] | None:
        """Return the impact of a change in a definition, or None without an entry in the table or a sender."""
        if rule not in CELLS or definition not in self.senders:
            return None
        sent = [CELLS[rule] if sender == "client" else CELLS[rule][::-1] for sender in self.senders[definition]]
        if rule == "field-removed-optional":  # a reader of a result may rely on the member
            risks = {"server": (Impact.RISKY, Impact.NONE), "client": (Impact.NONE, Impact.RISKY)}
            sent += [risks[sender] for name, sender in self.results if name == definition]
        return max(cell[0] for cell in sent), max(cell[1] for cell in sent)


def _loose(protocol: Protocol) -> set[str]:
    """Return definitions below an untagged union: a value that one member rejects may fit another member."""
    names = [
        name
        for definition in protocol.definitions.values()
        for option in _options(definition.type)
        for name in references(option)
    ]
    seen: set[str] = set()
    while names:
        name = names.pop()
        if name not in seen:
            seen.add(name)
            names.extend(references(protocol.definitions[name].type))
    return seen


def _options(type: Type) -> Iterator[Type]:
    """Yield the members of untagged unions in `type`."""
    match type:
        case Union(members, tag):
            yield from members if tag is None else ()
            for member in members:
                yield from _options(member)
        case Array(items=inner) | Map(values=inner):
            yield from _options(inner)
        case Object(fields):
            for field in fields:
                yield from _options(field.type)
        case _:
            return
