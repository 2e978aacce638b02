"""Find the messages that contain a definition, and their senders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from mcp_bindgen.ir.model import OTHER_SIDE, Array, Method, Object, Protocol, Ref, Sender, Type, Union, references

from .finding import Message

ENVELOPE = "JSONRPCMessage"
"""Definition of all messages: its envelope applies to both senders."""

PAYLOAD = frozenset({"params", "result"})
"""Members of an envelope with placeholder types; the methods determine their types."""

ENVELOPE_MEMBERS = frozenset({"jsonrpc", "id"})
"""Members of the JSON-RPC envelope, which some revisions repeat in the definition of each message."""


class Reach:
    """Senders and messages of each definition of a revision.

    The role unions determine the sender of a request or a notification. Its params come from the sender, its result
    from the other side. Results and params refer to embedded messages.

    Attributes:
        depths: Definition -> number of references between the nearest message and it.
        results: Sender -> definitions in its results, without the messages that these embed.
    """

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self._own, self._envelopes = messages(protocol), envelopes(protocol)
        self._messages: dict[str, dict[Sender, set[Message]]] = defaultdict(lambda: defaultdict(set))
        self.depths: dict[str, int] = {}
        self._inside = {name: self._below(name) for name in protocol.definitions}
        self.results: dict[Sender, set[str]] = defaultdict(set)
        for message, method in sent(protocol).items():
            self._spread([Ref(method.definition)], message.sender, {message})
            answers = [name for type in method.answers for name in references(type)]
            self.results[OTHER_SIDE[message.sender]] |= protocol.reach(
                answers, protocol.definitions.keys() - self._own
            ).keys()
            self._spread(method.answers, OTHER_SIDE[message.sender], {message}, 1)
        self._spread([Ref(error.definition) for error in protocol.errors if error.definition], "server", set())
        for sender in OTHER_SIDE if ENVELOPE in protocol.definitions else ():
            self._spread([Ref(ENVELOPE)], sender, set())

    def _spread(self, roots: Iterable[Type], sender: Sender, messages: set[Message], depth: int = 0) -> None:
        seen: set[str] = set()
        level = [name for root in roots for name in references(root)]
        while level:
            new = [name for name in dict.fromkeys(level) if name not in seen]
            for name in new:
                self._messages[name][sender] |= messages
                self.depths[name] = min(depth, self.depths.get(name, depth))
            seen.update(new)
            level, depth = [name for one in new for name in self._inside[one]], depth + 1

    def _below(self, name: str) -> list[str]:
        type = self.protocol.definitions[name].type
        if isinstance(type, Object):
            hidden = ENVELOPE_MEMBERS if name in self._own else PAYLOAD if name in self._envelopes else frozenset[str]()
            type = Object(tuple(field for field in type.fields if field.wire not in hidden), type.extra)
        return references(type)

    def of(self, name: str) -> Mapping[Sender, set[Message]]:
        """Return sender -> messages with the definition in their params or results."""
        return self._messages.get(name, {})


def envelopes(protocol: Protocol) -> frozenset[str]:
    """Return the definitions of whole JSON-RPC messages."""
    found: set[str] = set()
    pending = [ENVELOPE] if ENVELOPE in protocol.definitions else []
    while pending:
        name = pending.pop()
        type = protocol.definitions[name].type
        if isinstance(type, Object):
            found |= {name} if type.field("jsonrpc") is not None else set()
        elif name not in found and isinstance(type, Union | Ref | Array):
            found.add(name)
            pending.extend(references(type))
    return frozenset(found)


def sent(protocol: Protocol) -> dict[Message, Method]:
    """Return message -> method, with one message for each sender."""
    return {Message.of(method, sender): method for method in protocol.methods for sender in method.senders}


def messages(protocol: Protocol) -> frozenset[str]:
    """Return the definitions of messages."""
    return frozenset(method.definition for method in protocol.methods)
