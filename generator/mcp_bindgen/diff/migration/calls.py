"""What becomes of calls and of their arguments."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from mcp_bindgen.protocol import calls, naming
from mcp_bindgen.protocol.model import Field, Method, Ref, Sender, Type

from ..finding import Message
from .effect import Effect, effect
from .pair import Pair
from .surface import SENDERS, Owner
from .types import Effects
from .views import MAPPING, NULL, View, Views, fits, suits

WHOLE = "params"
"""The one argument of a call that takes its params as a whole."""


class CallEffects:
    """What becomes of calls.

    Args:
        pair: The bindings of both revisions.
    """

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.call = cache(self._call)
        self.walk = cache(self._walk)
        self.argument = cache(self._argument)
        self.position = cache(self._position)
        self.needed = cache(self._needed)

    # --- calls --------------------------------------------------------------------------------------------------

    def _call(self, owner: Owner, name: str) -> Effects:
        """What becomes of a call, its arguments excepted."""
        method, sender = self.pair.old.calls[owner, name], SENDERS[owner]
        heir = self.pair.heir_of(method, sender=sender)
        if heir is None:
            return (gone(self.pair, method, sender, name),)
        found: list[Effect] = []
        if (renamed := calls.call_name(heir)) != name:
            cause = self.pair.causes.of_name(method.definition)
            found.append(effect("renamed", cause, "definition-renamed", method.definition, name, renamed))
        found += self._carried(method, heir, sender)
        found += self._guarded(method, heir, sender)
        if not fits(self.pair.after.of(heir.result), self.pair.before.of(method.result)):
            found.append(answer(self.pair, method, sender, *self.pair.words(method.result, heir.result)))
        if (self._fields(method) is None) != (self._new_fields(heir) is None):
            cause = self.pair.causes.of_type(params_name(method.params))
            before, after = _signature(self._fields(method)), _signature(self._new_fields(heir))
            found.append(effect("changed", cause, "type-changed", method.definition, before, after))
        return tuple(found)

    def _carried(self, method: Method, heir: Method, sender: Sender) -> Effects:
        if method.carrier == heir.carrier:
            return ()
        message = str(Message(heir.name, heir.kind, sender))
        cause = self.pair.causes.of_message(message)
        return (effect("changed", cause, "message-carrier-changed", message, method.carrier, heir.carrier),)

    def _guarded(self, method: Method, heir: Method, sender: Sender) -> Effects:
        """A call for which the other side, or this one, must declare more than before."""
        old, new = method.capability(sender), heir.capability(sender)
        if new is None or new == old:
            return ()
        owner, _, path = new.partition(".")
        cause = self.pair.causes.at([f"{owner.capitalize()}Capabilities.{path}"])
        hint = f"It needs the capability `{path}` of the {owner} now, and fails without it."
        subject = cause.subject if cause else str(Message(heir.name, heir.kind, sender))
        fingerprint = cause.fingerprint if cause else ""
        was = f"needs {old}" if old else "needs no capability"
        return (Effect("changed", "capability-added", subject, was, f"needs {new}", hint, fingerprint),)

    def _walk(self, owner: Owner, name: str) -> Effects:
        """What becomes of a walk through a list."""
        method, walk = self.pair.old.walks[owner, name]
        heir = self.pair.heir_of(method, sender=SENDERS[owner])
        new = calls.walk(self.pair.new.protocol, heir) if heir is not None else None
        if new is None:
            return (gone(self.pair, method, SENDERS[owner], name),)
        if new.name != name:
            cause = self.pair.causes.of_name(method.definition)
            return (effect("renamed", cause, "definition-renamed", method.definition, name, new.name),)
        if fits(self.pair.after.of(new.item), self.pair.before.of(walk.item)):
            return ()
        return (answer(self.pair, method, SENDERS[owner], *self.pair.words(walk.item, new.item)),)

    # --- arguments ----------------------------------------------------------------------------------------------

    def _fields(self, method: Method) -> tuple[Field, ...] | None:
        return calls.call_arguments(self.pair.old.protocol, method)

    def _new_fields(self, method: Method) -> tuple[Field, ...] | None:
        return calls.call_arguments(self.pair.new.protocol, method)

    def arguments(self, owner: Owner, name: str) -> dict[str, Field]:
        """The arguments of an old call that are fields of its params, in their order."""
        fields = self._fields(self.pair.old.calls[owner, name]) or ()
        return {naming.argument(field.name): field for field in fields}

    def _argument(self, owner: Owner, stub: str, name: str, given: View | None = None) -> Effects:
        """What becomes of an argument; nothing where the call as a whole says it.

        `given` is what it is given, where that is known better than that it fits the argument.
        """
        method = self.pair.old.calls[owner, stub]
        heir = self.pair.heir_of(method, sender=SENDERS[owner])
        if heir is None or (self._fields(method) is None) != (self._new_fields(heir) is None):
            return ()
        subject, causes = f"{method.definition}.params", self.pair.causes
        params = params_name(method.params)
        if self._fields(method) is None:
            if name != WHOLE or suits(given, self.pair.before.of(method.params), self.pair.after.of(heir.params)):
                return ()
            before, after = self.pair.words(method.params, heir.params)
            return (effect("changed", causes.of_type(params), "type-changed", subject, before, after),)
        field = self.arguments(owner, stub).get(name)
        if field is None:
            return ()
        new = self._successor(method, heir, field)
        wire, now = (new.wire, new.type) if new is not None else (field.wire, None)
        cause = causes.of_member(params, wire, now)
        subject = f"{subject}.{field.wire}"
        if new is None:
            rule = f"field-removed-{'required' if field.required else 'optional'}"
            return (effect("gone", cause, rule, subject, name, ""),)
        if naming.argument(new.name) != name:
            return (effect("renamed", cause, "field-renamed", subject, name, naming.argument(new.name)),)
        if suits(given, _taken(self.pair.before, field), _taken(self.pair.after, new, all=True)):
            return ()
        return (effect("changed", cause, "type-changed", subject, *self.pair.field_words(field, new)),)

    def _successor(self, method: Method, heir: Method, field: Field) -> Field | None:
        """The argument that an old one is now."""
        new = {one.wire: one for one in self._new_fields(heir) or ()}
        return new.get(self._wires(method).get(field.wire, field.wire))

    def _wires(self, method: Method) -> Mapping[str, str]:
        """Old wire name -> new wire name of the params."""
        successors = self.pair.successors(params_name(method.params)) if method.params is not None else {}
        return {wire: field.wire for wire, field in successors.items()}

    def _position(self, owner: Owner, stub: str, index: int, given: View | None = None) -> Effects:
        """What becomes of an argument that is given by position."""
        method = self.pair.old.calls[owner, stub]
        heir = self.pair.heir_of(method, sender=SENDERS[owner])
        fields, others = self._fields(method), self._new_fields(heir) if heir is not None else None
        if fields is None:
            return self._argument(owner, stub, WHOLE, given) if index == 0 else ()
        if index >= len(calls.positional(method, fields)):
            return ()
        found = self._argument(owner, stub, naming.argument(fields[index].name), given)
        if found or heir is None or others is None:
            return found
        new = self._successor(method, heir, fields[index])
        places = [field.wire for field in calls.positional(heir, others)]
        if new is None or (new.wire in places and places.index(new.wire) == index):
            return ()
        place = f"argument {places.index(new.wire) + 1}" if new.wire in places else "a keyword"
        subject = f"{method.definition}.params.{new.wire}"
        hint = f"Give it by name: `{naming.argument(new.name)}=`."
        return (Effect("changed", "type-changed", subject, f"argument {index + 1}", place, hint),)

    def _needed(self, owner: Owner, stub: str) -> dict[str, Effect]:
        """The arguments that a call needs now and did not need before."""
        method = self.pair.old.calls[owner, stub]
        heir = self.pair.heir_of(method, sender=SENDERS[owner])
        if heir is None or (self._fields(method) is None) != (self._new_fields(heir) is None):
            return {}
        olds = {self._wires(method).get(field.wire, field.wire): field for field in self._fields(method) or ()}
        found: dict[str, Effect] = {}
        for field in self._new_fields(heir) or ():
            was = olds.get(field.wire)
            if calls.may_omit(field) or (was is not None and not calls.may_omit(was)):
                continue
            rule = "field-became-required" if was is not None else "field-added-required"
            params = params_name(method.params) or params_name(heir.params)
            cause = self.pair.causes.of_member(params, field.wire)
            subject = f"{method.definition}.params.{field.wire}"
            found[naming.argument(field.name)] = effect(
                "needed", cause, rule, subject, *self.pair.field_words(was, field)
            )
        return found


def gone(pair: Pair, method: Method, sender: Sender, name: str) -> Effect:
    """The effect of a message that is not sent any more."""
    message = str(Message(method.name, method.kind, sender))
    rule = "request-method-removed" if method.kind == "request" else "notification-removed"
    return effect("gone", pair.causes.of_message(message), rule, message, name, "")


def answer(pair: Pair, method: Method, sender: Sender, old: str, new: str) -> Effect:
    """The effect of another answer to a request."""
    message = str(Message(method.name, method.kind, sender))
    cause = pair.causes.within(message) or pair.causes.of_name(params_name(method.result))
    return effect("changed", cause, "type-changed", message, f"answers {old}", f"answers {new}")


def params_name(type: Type | None) -> str:
    """The name of a definition that params or a result are; empty where they have none."""
    return type.name if isinstance(type, Ref) else ""


def _signature(fields: tuple[Field, ...] | None) -> str:
    names = [WHOLE] if fields is None else [naming.argument(field.name) for field in fields]
    return f"({', '.join(names)})"


def _taken(views: Views, field: Field, *, all: bool = False) -> View:
    """What a call takes for an argument; with `all`, `None` as well where it may be left out."""
    taken = frozenset({MAPPING}) if calls.is_metadata(field) else views.of(field.type)
    return taken | {NULL} if all and calls.may_omit(field) and field.default is None else taken
