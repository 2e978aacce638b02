"""Hypothesis strategies for the arguments and results of a contract's tools."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from mcp_bindgen.app.validation import Validator
from mcp_bindgen.contract.document import ContractSource, contract_from
from mcp_bindgen.contract.model import Entry
from mcp_bindgen.contract.samples import samples
from mcp_bindgen.json_schema.keywords import IN_PLACE, children
from mcp_bindgen.json_schema.references import Targets
from mcp_bindgen.spec.errors import suggestion
from mcp_bindgen.spec.json import JSON_TYPES, is_object, listed

try:
    from hypothesis import strategies as st
except ModuleNotFoundError:
    raise ImportError("strategies for contracts need hypothesis: pip install hypothesis") from None

_MAX_ITEMS = 5
_MAX_TEXT_CHARS = 20
_SAFE_INTEGER = 2**53 - 1

_KINDS = list(JSON_TYPES)
_CHARACTERS = st.characters(exclude_categories=["Cs"])
_TEXT = st.text(_CHARACTERS, max_size=_MAX_TEXT_CHARS)
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
    free = _Strategies(schema).of(schema)

    @st.composite
    def draw_valid(draw: st.DrawFn) -> Any:
        value = draw(free)
        return value if not validator.problems(value, "") else draw(st.sampled_from(known))

    return draw_valid()


class _Strategies:
    """Strategies for the types and limits that a schema states; some values break its other keywords."""

    def __init__(self, root: Any) -> None:
        self._targets = Targets(root)
        self._known: dict[str, st.SearchStrategy[Any]] = {}

    def of(self, schema: Any) -> st.SearchStrategy[Any]:
        """Return the strategy for a schema."""
        if not is_object(schema):
            return _JSON
        found = [st.just(schema["const"])] if "const" in schema else []
        found += [st.sampled_from(schema["enum"])] if schema.get("enum") else []
        if isinstance(reference := schema.get("$ref"), str):
            found.append(self._referred(reference))
        found += [self.of(part) for keyword, _, part in children(schema) if keyword in IN_PLACE]
        plain = [] if schema.keys() & {"$ref", "anyOf"} else _KINDS
        kinds = schema.get("type", "object" if "properties" in schema else plain)
        found += [self._of_kind(kind, schema) for kind in listed(kinds)]
        return st.one_of(found) if found else _JSON

    def _referred(self, reference: str) -> st.SearchStrategy[Any]:
        if reference not in self._known:
            self._known[reference] = st.deferred(lambda: self._known[reference])
            self._known[reference] = self.of(self._targets.find(reference))
        return self._known[reference]

    def _of_kind(self, kind: str, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
        match kind:
            case "object":
                return self._object(schema)
            case "array":
                return st.lists(self.of(schema.get("items")), **_sizes(schema, "Items", _MAX_ITEMS))
            case "string":
                return st.text(_CHARACTERS, **_sizes(schema, "Length", _MAX_TEXT_CHARS))
            case "integer" | "number":
                return _number(kind, schema)
            case "boolean":
                return st.booleans()
            case "null":
                return st.none()
            case _:
                return _JSON

    def _object(self, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
        members = {name: self.of(part) for name, part in schema.get("properties", {}).items()}
        required = {name: members.pop(name) for name in schema.get("required", ()) if name in members}
        known = st.fixed_dictionaries(required, optional=members)
        extra = schema.get("additionalProperties", False)
        if extra is False:
            return known
        return st.tuples(st.dictionaries(_TEXT, self.of(extra), max_size=2), known).map(_merged)


def _merged(members: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    """Return the members of two objects; those of the second one win."""
    extra, own = members
    return {**extra, **own}


def _sizes(schema: dict[str, Any], counted: str, more: int) -> dict[str, Any]:
    """Return the limits of a length, which may be floats such as `2.0` in JSON, at most `more` apart."""
    least = int(schema.get(f"min{counted}", 0))
    most = min(schema.get(f"max{counted}", math.inf), least + more)
    return {"min_size": least, "max_size": max(least, int(most))}


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
