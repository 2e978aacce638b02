"""Hypothesis strategies for the arguments and results of a contract's tools."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from mcp_bindgen.app.validation import Validator
from mcp_bindgen.contract.document import ContractSource, contract_from
from mcp_bindgen.contract.exact import VALUE, exact_types
from mcp_bindgen.contract.model import Entry
from mcp_bindgen.contract.samples import samples
from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.model import AnyValue, Array, Const, Map, Object, Ref, Scalar, Tuple, Type, Union, is_implied
from mcp_bindgen.spec.errors import suggestion

_MAX_ITEMS = 5
_MAX_TEXT_CHARS = 20
_SAFE_INTEGER = 2**53 - 1

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=_MAX_TEXT_CHARS)
_INTEGERS = st.integers(-_SAFE_INTEGER, _SAFE_INTEGER)
_LEAVES = st.none() | st.booleans() | _INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | _TEXT
_JSON = _LEAVES | st.lists(_LEAVES, max_size=3) | st.dictionaries(_TEXT, _LEAVES, max_size=3)


def arguments(contract: ContractSource, tool: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return a strategy for valid arguments of a tool: `@given(arguments("weather.yaml", "forecast"))`.

    Args:
        contract: The contract, its document, or the path of its file.
        tool: Name of the tool.

    Raises:
        BadInput: The contract cannot be read.
        ValueError: It has no such tool, or no valid value was found.
    """
    return _valid(_tool(contract, tool), "inputSchema")


def results(contract: ContractSource, tool: str) -> st.SearchStrategy[Any]:
    """Return a strategy for valid structured results of a tool.

    Args:
        contract: The contract, its document, or the path of its file.
        tool: Name of the tool.

    Raises:
        BadInput: The contract cannot be read.
        ValueError: It has no such tool, the tool has no output schema, or no valid value was found.
    """
    found = _tool(contract, tool)
    if "outputSchema" not in found.raw:
        raise ValueError(f"the tool {tool!r} has no outputSchema, so its results are content of any kind")
    return _valid(found, "outputSchema")


def _tool(source: ContractSource, name: str) -> Entry:
    tools = {one.name: one for one in contract_from(source).tools}
    if name not in tools:
        raise ValueError(f"the contract has no tool {name!r}; {suggestion(name, tools)}")
    return tools[name]


def _valid(tool: Entry, member: str) -> st.SearchStrategy[Any]:
    """Return a strategy for values that a schema of a tool accepts: free ones, and in their place samples."""
    schema = tool.raw[member]
    known = samples(schema)
    if not known:
        raise ValueError(f"no valid value was found for the {member} of {tool.name!r}; write a strategy of your own")
    validator = Validator(schema, f"the {member} of {tool.name!r}")
    free = _Strategies(exact_types(schema)).of(VALUE)

    @st.composite
    def draw_valid(draw: st.DrawFn) -> Any:
        value = draw(free)
        return value if not validator.problems(value, "") else draw(st.sampled_from(known))

    return draw_valid()


class _Strategies:
    """Strategies for the types of a schema; some values break keywords that types do not express."""

    def __init__(self, types: Protocol) -> None:
        self._definitions = types.definitions
        self._known: dict[str, st.SearchStrategy[Any]] = {}

    def of(self, type: Type) -> st.SearchStrategy[Any]:
        """Return the strategy for a type."""
        match type:
            case AnyValue():
                return _JSON
            case Const(values):
                return st.sampled_from(values)
            case Scalar():
                return _scalar(type)
            case Ref(name):
                if name not in self._known:
                    self._known[name] = st.deferred(lambda: self._known[name])
                    self._known[name] = self.of(self._definitions[name].type)
                return self._known[name]
            case Union(members):
                return st.one_of([self.of(member) for member in members]) if members else _JSON
            case Tuple(prefix=prefix):
                return st.tuples(*map(self.of, prefix)).map(list)
            case Array(items, constraints):
                limits = dict(constraints)
                least: int = limits.get("minItems", 0)
                most: int = min(limits.get("maxItems", least + _MAX_ITEMS), least + _MAX_ITEMS)
                return st.lists(self.of(items), min_size=least, max_size=max(least, most))
            case Map(values):
                return st.dictionaries(_TEXT, self.of(values), max_size=_MAX_ITEMS)
            case Object():
                return self._object(type)

    def _object(self, type: Object) -> st.SearchStrategy[Any]:
        fields = {field.wire: self.of(field.type) for field in type.fields}
        needed = {field.wire for field in type.fields if field.required}
        known = st.fixed_dictionaries(
            {name: strategy for name, strategy in fields.items() if name in needed},
            optional={name: strategy for name, strategy in fields.items() if name not in needed},
        )
        if type.extra is None or is_implied(type.extra):
            return known
        more = st.dictionaries(_TEXT, self.of(type.extra), max_size=2)
        return st.tuples(more, known).map(_merged)


def _merged(members: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    """Return the members of two objects; those of the second one win."""
    extra, own = members
    return {**extra, **own}


def _scalar(type: Scalar) -> st.SearchStrategy[Any]:
    limits = dict(type.constraints)
    match type.kind:
        case "string":
            least: int = limits.get("minLength", 0)
            most: int = min(limits.get("maxLength", math.inf), least + _MAX_TEXT_CHARS)
            return st.text(st.characters(exclude_categories=["Cs"]), min_size=least, max_size=max(least, most))
        case "integer" | "number":
            return _number(type.kind, limits)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()


def _number(kind: str, limits: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return integers within limits, and for numbers also fractions; multiples of `multipleOf`."""
    lows = [limits[one] for one in ("minimum", "exclusiveMinimum") if one in limits]
    highs = [limits[one] for one in ("maximum", "exclusiveMaximum") if one in limits]
    low, high = max(lows, default=-_SAFE_INTEGER), min(highs, default=_SAFE_INTEGER)
    step = limits.get("multipleOf")
    if step:
        first, last = math.ceil(Fraction(low) / Fraction(step)), math.floor(Fraction(high) / Fraction(step))
        return st.integers(first, last).map(lambda count: count * step) if first <= last else _INTEGERS
    whole = st.integers(math.ceil(low), math.floor(high)) if math.ceil(low) <= math.floor(high) else _INTEGERS
    fractions = kind == "number" and low < high
    return whole | st.floats(float(low), float(high)) if fractions else whole
