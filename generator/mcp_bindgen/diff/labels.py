"""Label definitions in subjects, and group subjects for reports."""

from __future__ import annotations

from collections import Counter

from mcp_bindgen.protocol.model import Protocol, Ref, references

from .finding import Message
from .match import Matches
from .reach import answers


class Labels:
    """The names of definitions in subjects: their own, but params that one message has alone go by that message.

    Args:
        old: The old revision.
        new: The new one.
        matches: The definitions that they have in common.
    """

    def __init__(self, old: Protocol, new: Protocol, matches: Matches) -> None:
        self.matches = matches
        self._old, self._new = _params(old), _params(new)
        self._groups = _groups(old) | _groups(new)
        self._subjects = {
            method.definition: str(Message(method.name, method.kind, method.senders[0])) for method in new.methods
        }
        self._messages = _messages(old) | _messages(new)

    def both(self, old: str, new: str) -> str:
        """Return the label of a definition of both revisions."""
        return self.new(new) if old in self._old else new

    def old(self, name: str) -> str:
        """Return the label of a definition that only the old revision has."""
        message = self._old.get(name)
        return f"{self.matches.new.get(message, message)}.params" if message else name

    def new(self, name: str) -> str:
        """Return the label of a definition of the new revision."""
        return f"{self._new[name]}.params" if name in self._new else name

    def message(self, name: str) -> str:
        """Return a message of the new revision as a subject, by its definition; empty for other definitions."""
        return self._subjects.get(name, "")

    def group(self, subject: str) -> str:
        """Return what a subject is listed under: its method, or its definition."""
        subject = subject.partition("|")[0]
        if subject in self._messages:
            return self._messages[subject]
        name = subject
        for mark in ".[{|":
            name = name.partition(mark)[0]
        return self._groups.get(name, name)


def _params(protocol: Protocol) -> dict[str, str]:
    """Return the definitions that are the params of one message and nothing else -> that message."""
    used = Counter(name for definition in protocol.definitions.values() for name in references(definition.type))
    return {
        method.params.name: method.definition
        for method in protocol.methods
        if isinstance(method.params, Ref)
        and used[method.params.name] == 1
        and not protocol.definitions[method.params.name].hoisted
    }


def _messages(protocol: Protocol) -> dict[str, str]:
    """Return the messages, as subjects -> their methods."""
    return {
        str(Message(method.name, method.kind, sender)): method.name
        for method in protocol.methods
        for sender in method.senders
    }


def _groups(protocol: Protocol) -> dict[str, str]:
    """Return the definitions that belong to one method -> its name."""
    results = Counter(type.name for method in protocol.methods for type in answers(method) if isinstance(type, Ref))
    found = {method.definition: method.name for method in protocol.methods}
    found |= {params: found[message] for params, message in _params(protocol).items()}
    for method in protocol.methods:
        for type in answers(method):
            if isinstance(type, Ref) and results[type.name] == 1:
                found[type.name] = method.name
    return found
