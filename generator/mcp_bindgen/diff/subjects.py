"""Name definitions in the subjects of findings, and group these subjects."""

from __future__ import annotations

from collections import Counter

from mcp_bindgen.ir.model import OTHER_SIDE, Protocol, Ref, references

from .finding import Message
from .location import NEW, OLD, only, root
from .match import Matches
from .reach import sent


class Subjects:
    """Names of definitions in subjects. Params of a single message are named after the message.

    Args:
        old: The old revision.
        new: The new revision.
        matches: The matched definitions.
    """

    def __init__(self, old: Protocol, new: Protocol, matches: Matches) -> None:
        self.matches = matches
        self._params = _params(old), _params(new)
        self._groups = _groups(old) | _groups(new)
        self._subjects = {method.definition: str(Message.of(method, method.senders[0])) for method in new.methods}
        messages = {*sent(old), *sent(new)}
        self._methods = {f"{OTHER_SIDE[one.sender]}->{one.sender} result {one.method}": one.method for one in messages}
        self._methods |= {str(one): one.method for one in messages}

    def both(self, old: str, new: str) -> str:
        """Return the label of a definition of both revisions."""
        return self.one(NEW, new) if old in self._params[OLD] else new

    def of(self, side: int, name: str) -> str:
        """Return the label of a definition of one revision."""
        other = (self.matches.new, self.matches.old)[side].get(name)
        return self.one(side, name) if other is None else self.both(*only(side, name, other))

    def one(self, side: int, name: str) -> str:
        """Return the label of a definition of one revision only."""
        message = self._params[side].get(name)
        if message is None:
            return name
        return f"{self.matches.new.get(message, message) if side == OLD else message}.params"

    def message(self, name: str) -> str:
        """Return the subject of a message of the new revision, by its definition; empty for other definitions."""
        return self._subjects.get(name, "")

    def group(self, subject: str) -> str:
        """Return the group of a subject: its method or its definition."""
        subject = subject.partition("|")[0]
        name = root(subject)
        return self._methods.get(subject) or self._groups.get(name, name)


def _params(protocol: Protocol) -> dict[str, str]:
    """Return definition -> message, for definitions used only as the params of this message."""
    used = Counter(name for definition in protocol.definitions.values() for name in references(definition.type))
    return {
        method.params.name: method.definition
        for method in protocol.methods
        if isinstance(method.params, Ref)
        and used[method.params.name] == 1
        and not protocol.definitions[method.params.name].inline
    }


def _groups(protocol: Protocol) -> dict[str, str]:
    """Return definition -> method, for definitions of one method only."""
    results = Counter(type.name for method in protocol.methods for type in method.answers if isinstance(type, Ref))
    found = {method.definition: method.name for method in protocol.methods}
    found |= {params: found[message] for params, message in _params(protocol).items()}
    for method in protocol.methods:
        for type in method.answers:
            if isinstance(type, Ref) and results[type.name] == 1:
                found[type.name] = method.name
    return found
