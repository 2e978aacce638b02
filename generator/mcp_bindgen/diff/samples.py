"""Small values of types: what a witness is built from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_bindgen.protocol.model import Array, Const, Free, Map, Object, Protocol, Ref, Scalar, Type, Union

_TEXT = {"uri": "https://example.org", "uri-template": "https://example.org/{id}", "byte": "AA=="}
_ANY: tuple[Any, ...] = ({}, "text", 1, 1.5, True, [], None)
_DEEPEST = 40


class Endless(Exception):
    """A type has no finite value."""


class Samples:
    """Values of the types of one revision.

    Args:
        protocol: The revision.
    """

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self._known: dict[str, Any] = {}

    def minimal(self, type: Type, depth: int = 0) -> Any:
        """The smallest value of `type`: an object with its required members, the first form of a union that ends.

        Raises:
            Endless: There is none.
        """
        if depth > _DEEPEST:
            raise Endless
        match type:
            case Free() | Map():
                return {}
            case Scalar():
                return next(scalars(type))
            case Const(values):
                return values[0]
            case Array(items, constraints):
                return [self.minimal(items, depth + 1)] * dict(constraints).get("minItems", 0)
            case Ref(name):
                if name not in self._known:
                    self._known[name] = self.minimal(self.protocol.definitions[name].type, depth + 1)
                return self._known[name]
            case Union(members):
                return self._first(members, depth)
            case Object(fields):
                return {field.wire: self.minimal(field.type, depth + 1) for field in fields if field.required}

    def _first(self, members: tuple[Type, ...], depth: int) -> Any:
        for member in members:
            try:
                return self.minimal(member, depth + 1)
            except Endless:
                continue
        raise Endless

    def variants(self, type: Type) -> Iterator[Any]:
        """Values of `type` that differ in kind, and such as lie at its limits."""
        match type:
            case Free():
                yield from _ANY
            case Scalar():
                yield from scalars(type)
            case Const(values):
                yield from values
            case Ref(name):
                yield from self.variants(self.protocol.definitions[name].type)
            case Union(members):
                for member in members:
                    yield from self.variants(member)
            case Array(items, constraints):
                lengths = {value + step for _, value in constraints for step in (-1, 0, 1)} | {0, 1}
                one = self.minimal(items)
                yield from ([one] * length for length in sorted(lengths) if length >= 0)
                yield from ([value] for value in self.variants(items))
            case Map(values):
                yield {}
                yield from ({"key": value} for value in self.variants(values))
            case Object():
                yield self.minimal(type)


def scalars(type: Scalar) -> Iterator[Any]:
    """Values of a scalar: one in its middle first, then those at its limits and beyond."""
    limits = dict(type.constraints)
    match type.kind:
        case "null":
            yield None
        case "boolean":
            yield True
        case "string":
            yield from _strings(limits, type.format)
        case "integer" | "number":
            yield from _numbers(limits, type.kind)


def _strings(limits: dict[str, Any], format: str | None) -> Iterator[str]:
    lengths = [value + step for name, value in limits.items() if name != "pattern" for step in (0, 1, -1)]
    text = _TEXT.get(format or "", "text")
    least, most = limits.get("minLength", 0), limits.get("maxLength", len(text))
    yield text if least <= len(text) <= most else "x" * least
    yield from ("x" * length for length in lengths if length >= 0)
    if "pattern" in limits:
        yield from ("a", "A", "0", "", "a-b", "2025-01-01")


def _numbers(limits: dict[str, Any], kind: str) -> Iterator[Any]:
    step = limits.get("multipleOf", 1)
    low, high = limits.get("minimum"), limits.get("maximum")
    if low is None and "exclusiveMinimum" in limits:
        low = limits["exclusiveMinimum"] + step
    if high is None and "exclusiveMaximum" in limits:
        high = limits["exclusiveMaximum"] - step
    start = low if low is not None else high if high is not None and high < step else step
    yield start
    for value in limits.values():
        yield from (value, value + 1, value - 1, 2 * value)
        if kind == "number":
            yield from (value + 0.5, value - 0.5)
    if kind == "number":
        yield 1.5
    yield 1
