"""Witnesses of findings: small values that a JSON Schema validator judges by both revisions.

A value is built around the changed place, with the required members of both revisions, so that only the change decides
the verdict. Values contain only declared members; the schemas are as open as stated.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

from jsonschema_rs import Draft202012Validator, Registry

from mcp_bindgen.ir.examples import Examples, Unfit
from mcp_bindgen.ir.model import Carrier, Map, Object, Protocol, Ref, Type, Union
from mcp_bindgen.ir.schema import document_of, schema_of
from mcp_bindgen.runtime.model.json_types import json_key

from .finding import RULES, Finding, Impact, Message, Witness
from .location import NEW, OLD, SIDES, Change, Location, only
from .messages import MessageChange

_GONE: Any = object()
"""Marks an omitted member."""

_ENVELOPE: dict[str, dict[str, Any]] = {"request": {"jsonrpc": "2.0", "id": 1}, "notification": {"jsonrpc": "2.0"}}
_NARROWED, _WIDENED, _BOTH = (True, False), (False, True), (True, True)
_MAX_VALUES = 60
"""Maximum number of values to try for a finding."""

Verdicts = tuple[bool, bool]
"""True if the old revision accepts a value, and True if the new revision accepts it."""


class Witnesses:
    """Builder of witnesses.

    Args:
        old: The old revision.
        new: The new revision.
    """

    def __init__(self, old: Protocol, new: Protocol) -> None:
        self.protocols = old, new
        self.examples = Examples(old), Examples(new)
        self._registry = Registry([(_urn(side), document_of(self.protocols[side])) for side in SIDES])
        self._validators: dict[tuple[int, str], Draft202012Validator] = {}

    def witnessed(self, finding: Finding, change: Change | MessageChange) -> Finding:
        """Return `finding` with a witness, or with the reason for its absence."""
        try:
            found = self._message(change) if isinstance(change, MessageChange) else self._type(change)
        except Unfit:
            found = "it has no finite instance"
        return replace(finding, unwitnessed=found) if isinstance(found, str) else replace(finding, witness=found)

    # --- messages -----------------------------------------------------------------------------------------------

    def _message(self, change: MessageChange) -> Witness | str:
        side = NEW if change.rule.endswith("-added") else OLD
        method = change.methods[side]
        if change.message is None or method is None:
            return "any error response may carry any code, so no schema tells them apart"
        envelope = _ENVELOPE[method.kind] if method.carrier == "message" else {}
        instance = {**self.examples[side].one(Ref(method.definition)), **envelope}
        old, new = (self._may_send(one, change.message, method.carrier, instance) for one in SIDES)
        if (old, new) != only(side, True, False):
            return "another message of the same direction accepts it as well"
        return Witness(instance, *only(side, method.definition, ""), old, new)

    # --- types --------------------------------------------------------------------------------------------------

    def _type(self, change: Change) -> Witness | str:
        types = change.location.unit.types
        wanted = _wanted(change)
        seen: dict[Verdicts, Any] = {}
        for instance in self._instances(change):
            verdicts = self.accepts(OLD, types[OLD], instance), self.accepts(NEW, types[NEW], instance)
            seen.setdefault(verdicts, instance)
            if verdicts in wanted:
                break
        found = next((verdicts for verdicts in wanted if verdicts in seen), None)
        if found is None:
            return _reason(set(seen), wanted)
        return Witness(seen[found], _name(types[OLD]), _name(types[NEW]), *found)

    def _instances(self, change: Change) -> Iterator[Any]:
        """Yield values of the unit with different values in the changed place, simplest first."""
        tried: set[object] = set()
        for value in self._leaves(change):
            for first in (NEW, OLD):
                instance = self._embedded(change.location, value, first)
                key = json_key(instance)
                if key not in tried:
                    tried.add(key)
                    yield instance
                if len(tried) > _MAX_VALUES:
                    return

    def _leaves(self, change: Change) -> Iterator[Any]:
        """Yield values for the changed place."""
        rule = change.rule
        if rule.startswith("additional-properties-"):
            yield {**self._merged(change.location, NEW), "other": True}
            return
        if rule.endswith(("-required", "-became-optional", "-opened", "-closed")):
            yield _GONE
        types = [(self.examples[side], type) for side in (NEW, OLD) if (type := change.types[side]) is not None]
        yield from (examples.one(type) for examples, type in types)
        yield from [_GONE] if rule == "field-moved" else []
        for examples, type in types:
            yield from examples.several(type)

    def _embedded(self, location: Location, value: Any, first: int) -> Any:
        """Return a value of the unit with `value` in its place; members of the side `first` take precedence."""
        while location.above is not None:
            kind, name = location.step
            if kind == "field":
                holder = self._merged(location.above, first)
                holder.pop(name, None)
                value = holder if value is _GONE else {**holder, name: value}
            elif kind == "values":
                value = {**self._merged(location.above, first), "key": value}
            elif kind == "items":
                value = [value]
            location = location.above
        if not location.unit.hidden:
            return value
        return {**value, **_ENVELOPE["notification" if location.unit.label.endswith("Notification") else "request"]}

    def _merged(self, location: Location, first: int) -> dict[str, Any]:
        """Return the members of an object that either revision requires."""
        found: dict[str, Any] = {}
        for side in (1 - first, first):
            type = self._object(location.types[side], side)
            if type is not None:
                found |= deepcopy(self.examples[side].one(type))
        return found

    def _object(self, type: Type, side: int) -> Object | Map | None:
        if isinstance(type, Ref) and type.name not in self.protocols[side].definitions:
            return None
        type = self.protocols[side].resolve(type)
        if isinstance(type, Union):
            forms = (self._object(member, side) for member in type.members)
            return next((form for form in forms if form is not None), None)
        return type if isinstance(type, Object | Map) else None

    def accepts(self, side: int, type: Type, instance: Any) -> bool:
        """Return whether a revision accepts a value of `type`."""
        key = side, repr(type)  # to Python, the constants 1 and true are equal
        if key not in self._validators:
            self._validators[key] = Draft202012Validator(schema_of(type, _urn(side)), registry=self._registry)
        return self._validators[key].is_valid(instance)

    def _may_send(self, side: int, message: Message, carrier: Carrier, instance: Any) -> bool:
        """Return whether a value is any message of the same kind, sender and carrier."""
        members = tuple(
            Ref(method.definition)
            for method in self.protocols[side].methods
            if method.kind == message.kind and message.sender in method.senders and method.carrier == carrier
        )
        return bool(members) and self.accepts(side, Union(members), instance)


def _urn(side: int) -> str:
    return ("urn:old", "urn:new")[side]


def _name(type: Type) -> str:
    return type.name if isinstance(type, Ref) else ""


def _wanted(change: Change) -> list[Verdicts]:
    """Return the verdicts that prove a change, best first."""
    if change.confused:
        return [_BOTH]
    if change.rule == "pattern-changed":
        return [_NARROWED, _WIDENED, _BOTH]
    clients = [RULES[rule].client for rule in (change.parts or (change.rule,))]
    wanted = [
        verdicts
        for side, verdicts in enumerate((_NARROWED, _WIDENED))
        if any(client[side] is Impact.BREAKS for client in clients)
    ]
    return wanted or [_BOTH]


def _reason(seen: set[Verdicts], wanted: list[Verdicts]) -> str:
    if seen <= {_BOTH}:
        return "both revisions accept every instance that was tried: another form of the type takes it"
    if wanted == [_BOTH]:
        return "no instance was found that both revisions accept: something else changed beside it"
    return "no instance was found that only this change decides on"
