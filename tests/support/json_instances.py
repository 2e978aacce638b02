"""Random JSON documents that a JSON Schema accepts, and small damage to them. It shares no code with the generator."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]

BIG = 2**53 + 1
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", "1", "null", "\U0001f600", "é"]
)
INTEGERS = st.integers(-1000, 1000) | st.sampled_from([0, 1, -1, BIG, -BIG, 2**64, 10**30])
FLOATS = st.floats(-1e6, 1e6, allow_nan=False).map(float) | st.sampled_from([0.0, 1.0, -0.5, 1e300, 5e-324, 0.1])
SCALARS = st.none() | st.booleans() | INTEGERS | FLOATS | TEXT
FLAT = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(TEXT, SCALARS, max_size=3)
JSON = FLAT | st.lists(FLAT, max_size=2) | st.dictionaries(TEXT, FLAT, max_size=2)
"""Any JSON, three levels deep; `st.recursive`, whose depth is not bounded, takes several times as long."""


class Instances:
    """Strategies for the definitions of one effective schema.

    Args:
        definitions: Definition name -> JSON Schema 2020-12.
        tempting: Names of members that no schema states, but an implementation might look for.
    """

    def __init__(
        self,
        definitions: dict[str, Schema],
        # Python names of fields are tempting for an implementation that accepts them by mistake.
        tempting: Sequence[str] = ("meta", "next_cursor", "is_error", "x"),
    ) -> None:
        self.definitions = definitions
        self.tempting = tempting
        self.known: dict[str, st.SearchStrategy[Any]] = {}

    def of(self, name: str) -> st.SearchStrategy[Any]:
        """Valid instances of a definition."""
        if name not in self.known:
            # A strategy that stands for itself until it is known lets definitions contain themselves.
            self.known[name] = st.deferred(lambda: self.known[name])
            self.known[name] = self.schema(self.definitions[name])
        return self.known[name]

    def schema(self, schema: Schema | bool) -> st.SearchStrategy[Any]:
        """Valid instances of a schema."""
        if isinstance(schema, bool):
            return JSON
        if "$ref" in schema:
            return self.of(schema["$ref"].rpartition("/")[2])
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        if "anyOf" in schema:
            return st.one_of([self.schema(member) for member in schema["anyOf"]])
        if "allOf" in schema:
            return self.all_of(schema["allOf"])
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return st.one_of([self.schema({**schema, "type": kind}) for kind in kinds])
        makers: dict[str | None, Callable[[Schema], st.SearchStrategy[Any]]] = {
            "object": self.object,
            "array": lambda node: st.lists(self.schema(node.get("items", True)), max_size=node.get("maxItems", 3)),
            "string": lambda node: TEXT,
            "integer": lambda node: _within(INTEGERS, node),
            "number": lambda node: _within(st.one_of(INTEGERS, FLOATS), node),
            "boolean": lambda node: st.booleans(),
            "null": lambda node: st.none(),
            None: lambda node: JSON,
        }
        return makers[kinds](schema)

    def object(self, schema: Schema) -> st.SearchStrategy[Any]:
        properties: dict[str, Any] = schema.get("properties", {})
        required = set(schema.get("required", ()))
        named = st.fixed_dictionaries(
            {name: self.schema(node) for name, node in properties.items() if name in required},
            optional={name: self.schema(node) for name, node in properties.items() if name not in required},
        )
        extra = schema.get("additionalProperties", True)
        if extra is False:
            return named
        names = (TEXT | st.sampled_from(self.tempting)).filter(lambda name: name not in properties)
        others = st.dictionaries(names, self.schema(extra), max_size=2)
        return st.builds(lambda one, other: {**other, **one}, named, others)

    def all_of(self, members: list[Schema]) -> st.SearchStrategy[Any]:
        resolved = [self.definitions[node["$ref"].rpartition("/")[2]] if "$ref" in node else node for node in members]
        merged: Schema = {"type": "object", "properties": {}, "required": []}
        for node in resolved:
            for name, child in node.get("properties", {}).items():
                before = merged["properties"].get(name, {})
                merged["properties"][name] = {**before, **child} if isinstance(child, dict) else before
            merged["required"] = [*merged["required"], *node.get("required", ())]
        return self.object(merged)


def _within(numbers: st.SearchStrategy[Any], schema: Schema) -> st.SearchStrategy[Any]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and high is None:
        return numbers
    whole = st.integers(low, high)
    return st.one_of(whole, st.floats(low, high, allow_nan=False)) if schema["type"] == "number" else whole


# --- damage ---------------------------------------------------------------------------------------------------


@st.composite
def damaged(draw: st.DrawFn, instances: st.SearchStrategy[Any]) -> Any:
    """A valid instance with one thing changed: a key dropped or added, a value of another type, a null, ..."""
    document = copy.deepcopy(draw(instances))
    places = list(_places(document))
    if not places:
        return draw(JSON)
    holder, key = draw(st.sampled_from(places))
    action = draw(st.sampled_from(["drop", "null", "text", "swap", "extra", "float", "nan", "big"]))
    value = holder[key]
    if action == "drop":
        del holder[key]
    elif action == "null":
        holder[key] = None
    elif action == "text":
        holder[key] = str(value)
    elif action == "swap":
        holder[key] = draw(JSON)
    elif action == "extra" and isinstance(holder, dict):
        holder[draw(TEXT | st.sampled_from(["meta", "next_cursor", "jsonrpc"]))] = draw(SCALARS)
    elif action == "float" and isinstance(value, int):
        holder[key] = draw(st.sampled_from([float(value % 1000), value % 1000 + 0.5, True]))
    elif action == "nan":
        holder[key] = draw(st.sampled_from([float("nan"), float("inf")]))
    else:
        holder[key] = draw(st.sampled_from([BIG, True, False, 0, [], {}]))
    return document


def _places(document: Any) -> Any:
    """Every place in a document, as a container and a key."""
    if isinstance(document, dict):
        for key in document:
            yield document, key
            yield from _places(document[key])
    elif isinstance(document, list):
        for index, item in enumerate(document):
            yield document, index
            yield from _places(item)
