"""Infer the senders of messages that the schema does not state."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from .model import OTHER_SIDE, Definitions, Kind, Method, Ref, Sender, Type, references

_BOTH: tuple[Sender, ...] = ("client", "server")


def kind_of(definition: str, method: str) -> Kind:
    """Return whether a message is a request or a notification, by its name, else by its method."""
    if definition.endswith("Request"):
        return "request"
    return "notification" if definition.endswith("Notification") or method.startswith("notifications/") else "request"


def infer_senders(
    method: str, kind: Kind, definition: str, model: Definitions, known: Iterable[Method]
) -> tuple[tuple[Sender, ...], str]:
    """Infer the senders of a message from the strongest evidence.

    The evidence, strongest first: a union of results with its result (`ServerResult`); a type of `_meta` that only one
    side sends in messages of this kind; methods of the same kind with the most leading segments in common; such methods
    of the other kind, which go the other way; the capability of its first segment.

    Args:
        method: The method.
        kind: Its kind.
        definition: The definition of its message.
        model: All definitions.
        known: The methods with stated senders.

    Returns:
        The senders, both sides without evidence, and the reason in a few words.
    """
    if kind == "request":
        result = f"{definition.removesuffix('Request')}Result"
        for side in _BOTH:
            if result in _members(f"{side.capitalize()}Result", model):
                return (OTHER_SIDE[side],), f"as its result is one of {side.capitalize()}Result"
    known, params = list(known), model.field_of(Ref(definition), "params")
    if isinstance(meta := _meta(params.type if params else None, model), Ref):
        same = [one for one in known if (one.kind, one.carrier) == (kind, "message")]
        alike = {one.senders for one in same if _meta(one.params, model) == meta}
        if len(alike) == 1 and len(senders := alike.pop()) == 1:
            return senders, f"as only the {senders[0]} sends {meta.name}"
    segments = _segments(method)
    near = sorted(known, key=lambda other: (-_common(segments, other), other.name))
    siblings = [other for other in near if len(segments) > 1 and _common(segments, other)]
    for other in (one for one in siblings if one.kind == kind):
        return other.senders, f"like {other.name!r}"
    for other in siblings:
        return tuple(sorted(OTHER_SIDE[sender] for sender in other.senders)), f"the other way round than {other.name!r}"
    for side in _BOTH:
        if model.field_of(Ref(f"{side.capitalize()}Capabilities"), segments[0]) is not None:
            sender = OTHER_SIDE[side] if kind == "request" else side
            return (sender,), f"as {segments[0]!r} is a capability of the {side}"
    return _BOTH, "as nothing says who does"


def _meta(params: Type | None, model: Definitions) -> Type | None:
    field = model.field_of(params, "_meta")
    return field.type if field is not None else None


def _segments(method: str) -> list[str]:
    return method.removeprefix("notifications/").split("/")


def _common(segments: list[str], other: Method) -> int:
    """Return how many segments two methods have in common at their beginning."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(segments, _segments(other.name), strict=False))])


def _members(union: str, model: Definitions) -> list[str]:
    """Return the definitions that a union consists of."""
    return references(model.definitions[union].type) if union in model.definitions else []
