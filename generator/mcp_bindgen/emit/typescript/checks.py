"""Checks of values: code that agrees with the JSON Schema of each definition."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import AnyValue, Array, Const, Field, Map, Object, Ref, Scalar, Type, Union

from .names import member

_SCALARS = {"null": "nothing"}


class Checks:
    """Code of the checks of a protocol.

    Attributes:
        constants: Name -> expression, of values that all checks share; an expression uses earlier ones.

    Args:
        protocol: The protocol.
        names: Definition -> name of its type.
    """

    def __init__(self, protocol: Protocol, names: Mapping[str, str]) -> None:
        self.constants: dict[str, str] = {}
        self._protocol = protocol
        self._names = names

    def body(self, type: Type) -> Sequence[str]:
        """Return the expressions whose first fault is the fault of `x`; no expressions accept every value.

        The check of an object begins after the check that it is one.
        """
        if not isinstance(type, Object):
            return [self._check(type, "x")]
        steps = [step for field in type.fields for step in self._field(field)]
        others = "v.unknownMember" if type.extra is None else self._function(type.extra)
        if others != "v.any":
            known = self._constant(f"new globalThis.Set({json.dumps([field.wire for field in type.fields])})")
            steps.append(f"v.others(x, {known}, {others})")
        return steps

    def _field(self, field: Field) -> Iterator[str]:
        value = member("x", field.wire)
        check = f"v.at({json.dumps(field.wire)}, {self._check(field.type, value)})"
        if field.required:
            yield check
        elif self._function(field.type) != "v.any":
            yield f"({value} === undefined ? undefined : {check})"

    def _check(self, type: Type, value: str) -> str:
        """Return the expression of the fault of a value."""
        match type:
            case Const((one,)):
                return f"v.constant({value}, {json.dumps(one)})"
            case Const(values):
                return f"v.oneOf({value}, {self._constant(json.dumps(values))})"
            case Array(AnyValue(), ()):
                return f"v.array({value})"
            case Array(items, constraints):
                return _limited(f"v.list({value}, {self._function(items)})", value, constraints)
            case Map(AnyValue()):
                return f"v.object({value})"
            case Map(values):
                return f"v.map({value}, {self._function(values)})"
            case Scalar(kind, constraints):
                return _limited(f"v.{_SCALARS.get(kind, kind)}({value})", value, constraints)
            case Union(members, tag):
                if tag is not None:
                    cases = ", ".join(self._case(member, tag) for member in members)
                    cases = self._constant(f"new globalThis.Map([{cases}])")
                    return f"v.tagged({value}, {json.dumps(tag)}, {cases})"
                checks = ", ".join(self._function(member) for member in members)
                return f"v.either({value}, {self._constant(f'[{checks}]')})"
            case AnyValue() | Ref() | Object():
                return f"{self._function(type)}({value})"

    def _function(self, type: Type) -> str:
        """Return the expression of a function that checks a value."""
        match type:
            case AnyValue():
                return "v.any"
            case Ref(name):
                return f"check{self._names[name]}"
            case Scalar(kind, ()):
                return f"v.{_SCALARS.get(kind, kind)}"
            case _:
                return self._constant(f"(x: unknown): v.Fault => {self._check(type, 'x')}")

    def _case(self, type: Type, tag: str) -> str:
        """Return a constant of the member `tag` with the check of the object that has it."""
        field = self._protocol.field_of(type, tag)
        assert field is not None
        assert isinstance(field.type, Const)
        return f"[{json.dumps(field.type.values[0])}, {self._function(type)}]"

    def _constant(self, expression: str) -> str:
        known = {text: name for name, text in self.constants.items()}
        name = known.get(expression, f"c{len(self.constants) + 1}")
        self.constants[name] = expression
        return name


def _limited(check: str, value: str, constraints: Iterable[tuple[str, object]]) -> str:
    limits = [f"v.limited({value}, {json.dumps(keyword)}, {json.dumps(limit)})" for keyword, limit in constraints]
    return f"({' ?? '.join([check, *limits])})" if limits else check
