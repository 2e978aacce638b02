"""Prove findings: for each on the wire a small value, held against both revisions by a JSON Schema validator.

A value is built around the place that changed, from what both revisions need besides, so that nothing else decides
whether it is accepted. It takes the closed form, without members that nobody declares; the schemas it is held against
are as open as they say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

from jsonschema_rs import Draft202012Validator, Registry

from mcp_bindgen.protocol.examples import Examples, Unfit
from mcp_bindgen.protocol.model import Carrier, Map, Object, Protocol, Ref, Type, Union
from mcp_bindgen.protocol.schema import document_of, schema_of

from .finding import Finding, Impact, Message, Witness
from .location import Change, Location
from .messages import MessageChange
from .rules import RULES

_GONE: Any = object()
"""Stands for a member that is left out."""

_ENVELOPE: dict[str, dict[str, Any]] = {"request": {"jsonrpc": "2.0", "id": 1}, "notification": {"jsonrpc": "2.0"}}
_SIDES = (0, 1)
_BOTH = (True, True)
_MOST = 60
"""How many values are tried for a finding."""

Verdicts = tuple[bool, bool]
"""Whether the old revision accepts a value, and whether the new one does."""


class Witnesses:
    """Builds and checks witnesses.

    Args:
        old: The old revision.
        new: The new one.
    """

    def __init__(self, old: Protocol, new: Protocol) -> None:
        self.protocols = old, new
        self.examples = Examples(old), Examples(new)
        self._registry = Registry([(_urn(side), document_of(self.protocols[side])) for side in _SIDES])
        self._validators: dict[tuple[int, str], Draft202012Validator] = {}
        self._roles: dict[tuple[int, str, str, str], Draft202012Validator | None] = {}

    def witnessed(self, finding: Finding, change: Change | MessageChange) -> Finding:
        """Return `finding` with a witness, or with the reason why it has none."""
        if isinstance(change, MessageChange) and change.message is None:
            return replace(finding, unwitnessed="any error response may carry any code, so no schema tells them apart")
        try:
            return self._message(finding, change) if isinstance(change, MessageChange) else self._type(finding, change)
        except Unfit:
            return replace(finding, unwitnessed="it has no finite instance")

    # --- messages -----------------------------------------------------------------------------------------------

    def _message(self, finding: Finding, change: MessageChange) -> Finding:
        assert change.message is not None
        side = 1 if finding.rule.endswith("-added") else 0
        method = change.new_method if side else change.old_method
        assert method is not None
        envelope = _ENVELOPE[method.kind] if method.carrier == "message" else {}
        instance = {**self.examples[side].one(Ref(method.definition)), **envelope}
        judges = [self._role(side, change.message, method.carrier) for side in _SIDES]
        old, new = (judge is not None and judge.is_valid(instance) for judge in judges)
        verdicts = old, new
        if verdicts != (side == 0, side == 1):
            return replace(finding, unwitnessed="another message of the same direction accepts it as well")
        name = method.definition
        return replace(finding, witness=Witness(instance, name if side == 0 else "", name if side else "", *verdicts))

    # --- types --------------------------------------------------------------------------------------------------

    def _type(self, finding: Finding, change: Change) -> Finding:
        unit = change.location.unit
        wanted = _wanted(change)
        seen: dict[Verdicts, Any] = {}
        for instance in self._instances(change):
            verdicts = self.accepts(0, unit.old, instance), self.accepts(1, unit.new, instance)
            seen.setdefault(verdicts, instance)
            if verdicts in wanted:
                break
        found = next((verdicts for verdicts in wanted if verdicts in seen), None)
        if found is None:
            return replace(finding, unwitnessed=_reason(set(seen), wanted))
        return replace(finding, witness=Witness(seen[found], _name(unit.old), _name(unit.new), *found))

    def _instances(self, change: Change) -> Iterator[Any]:
        """Make values of the unit in which the place that changed holds different things; the simplest first."""
        tried: set[str] = set()
        for value in self._leaves(change):
            for first in (1, 0):
                instance = self._embedded(change.location, value, first)
                text = json.dumps(instance, sort_keys=True)
                if text not in tried:
                    tried.add(text)
                    yield instance
                if len(tried) > _MOST:
                    return

    def _leaves(self, change: Change) -> Iterator[Any]:
        """Make values to put into the place that changed."""
        rule, types = change.rule, (change.old_type, change.new_type)
        if rule.startswith("additional-properties-"):
            yield {**self._merged(change.location, 1), "other": True}
            return
        if rule in ("field-became-required", "field-became-optional") or rule.endswith("-required"):
            yield _GONE
        for side in (1, 0):
            type = types[side]
            if type is not None:
                yield self.examples[side].one(type)
        for side in (1, 0):
            type = types[side]
            if type is not None:
                yield from self.examples[side].several(type)

    def _embedded(self, location: Location, value: Any, first: int) -> Any:
        """Return `value` in its place within a value of the unit; the side `first` decides where both have a say."""
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
        if location.unit.hidden:
            value = {
                **value,
                **_ENVELOPE["notification" if location.unit.label.endswith("Notification") else "request"],
            }
        return value

    def _merged(self, location: Location, first: int) -> dict[str, Any]:
        """Return the members that an object in a place needs according to either revision."""
        found: dict[str, Any] = {}
        for side in (1 - first, first):
            type = self._object(location.new if side else location.old, side)
            if type is not None:
                found |= deepcopy(self.examples[side].one(type))
        return found

    def _object(self, type: Type, side: int) -> Object | Map | None:
        type = self.protocols[side].resolve(type)
        if isinstance(type, Union):
            forms = [self._object(member, side) for member in type.members]
            return next((form for form in forms if form is not None), None)
        return type if isinstance(type, Object | Map) else None

    def accepts(self, side: int, type: Type, instance: Any) -> bool:
        """Return whether a revision accepts a value of `type`."""
        key = side, repr(type)  # to Python, the constants 1 and true are equal
        if key not in self._validators:
            self._validators[key] = self._validator(side, type)
        return self._validators[key].is_valid(instance)

    def _validator(self, side: int, type: Type) -> Draft202012Validator:
        return Draft202012Validator(schema_of(type, _urn(side)), registry=self._registry)

    def _role(self, side: int, message: Message, carrier: Carrier) -> Draft202012Validator | None:
        """Judge everything of the same kind that the sender of a message may send in the same way, if anything."""
        key = side, message.kind, message.sender, carrier
        if key not in self._roles:
            members = tuple(
                Ref(method.definition)
                for method in self.protocols[side].methods
                if method.kind == message.kind and message.sender in method.senders and method.carrier == carrier
            )
            self._roles[key] = self._validator(side, Union(members)) if members else None
        return self._roles[key]


def _urn(side: int) -> str:
    return ("urn:old", "urn:new")[side]


def _name(type: Type) -> str:
    return type.name if isinstance(type, Ref) else ""


def _wanted(change: Change) -> list[Verdicts]:
    """Return the verdicts that would show a change, the best first."""
    rules = [RULES[rule] for rule in (change.parts or (change.rule,))]
    narrowed = any(rule.client[0] is Impact.BREAKS for rule in rules)
    widened = any(rule.client[1] is Impact.BREAKS for rule in rules)
    wanted: list[Verdicts] = [(True, False)] if narrowed else []
    wanted += [(False, True)] if widened else []
    if change.confused:
        return [_BOTH]
    if change.rule == "pattern-changed":
        return [(True, False), (False, True), _BOTH]
    return wanted or [_BOTH]


def _reason(seen: set[Verdicts], wanted: list[Verdicts]) -> str:
    if seen <= {_BOTH}:
        return "both revisions accept every instance that was tried: another form of the type takes it"
    if wanted == [_BOTH]:
        return "no instance was found that both revisions accept: something else changed beside it"
    return "no instance was found that only this change decides on"
