"""Mutated pairs of real contracts, and an independent judge, which only uses instances and validators.

The judge makes its own values, without the generator of the product. A strict sender sends the members that it
declares, and where its schema allows more, members that neither side declares; formats count as conditions. A sensible
sender sends declared members and the entries of maps, and integers that JSON keeps; formats are hints. A sensible
reader ignores unknown members of results.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import jsonschema_rs

from tests.harness.json_instances import Instances

Schema = dict[str, Any]

WORDS = frozenset({"description", "title", "default", "examples", "$comment", "markdownDescription"})
MAPS = ("properties", "$defs", "definitions", "patternProperties")
PATTERNS = ("^[a-z]+$", "^a", "^[0-9]*$", ".")
FORMATS = ("date", "email", "uri", "uuid", "date-time")
KINDS = ("string", "integer", "number", "boolean", "null", "array", "object")
UNDECLARED = "some-other-member"


def wordless(node: Any, *, names: bool = False) -> Any:
    """Return a schema without descriptions, so that a verdict is about conditions."""
    if isinstance(node, dict):
        return {
            key: wordless(value, names=key in MAPS and not names)
            for key, value in node.items()
            if names or key not in WORDS
        }
    return [wordless(one) for one in node] if isinstance(node, list) else node


# --- mutations --------------------------------------------------------------------------------------------------------


def places(node: Any) -> Iterator[Schema]:
    """Yield the subschemas that a change may apply to, with the schema itself."""
    if not isinstance(node, dict):
        return
    yield node
    for keyword in MAPS:
        for child in node.get(keyword, {}).values():
            yield from places(child)
    for keyword in ("items", "additionalProperties", "not"):
        yield from places(node.get(keyword))
    for keyword in ("anyOf", "oneOf", "allOf", "prefixItems"):
        for child in node.get(keyword, ()):
            yield from places(child)


SMALL: tuple[Schema, ...] = (
    *({"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": "string", "enum": ["a", "b", "c"]}),
    *({"type": "array", "items": {"type": "string"}}, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
)


def small(random: Random) -> Schema:
    return copy.deepcopy(random.choice(SMALL))


def is_record(node: Schema) -> bool:
    return "properties" in node or node.get("type") == "object"


def add(node: Schema, random: Random) -> None:
    if is_record(node):
        name = random.choice(["limit", "mode", "extra"])
        node.setdefault("properties", {})[name] = small(random)
        if random.random() < 0.4:
            node["required"] = sorted({*node.get("required", ()), name})


def remove(node: Schema, random: Random) -> None:
    if node.get("properties"):
        name = random.choice(sorted(node["properties"]))
        del node["properties"][name]
        if random.random() < 0.8:
            node["required"] = [one for one in node.get("required", ()) if one != name]


def rename(node: Schema, random: Random) -> None:
    if node.get("properties"):
        name = random.choice(sorted(node["properties"]))
        node["properties"][f"{name}2"] = node["properties"].pop(name)
        node["required"] = [f"{name}2" if one == name else one for one in node.get("required", ())]


def require(node: Schema, random: Random) -> None:
    optional = sorted(set(node.get("properties", ())) - set(node.get("required", ())))
    if optional:
        node["required"] = [*node.get("required", ()), random.choice(optional)]


def unrequire(node: Schema, random: Random) -> None:
    if node.get("required"):
        node["required"] = node["required"][1:]


def widen(node: Schema, random: Random) -> None:
    if isinstance(node.get("type"), str) and node["type"] != "object":
        node["type"] = [node["type"], random.choice([kind for kind in KINDS[:5] if kind != node["type"]])]


def retype(node: Schema, random: Random) -> None:
    if node.get("type") in KINDS[:5]:
        node["type"] = random.choice(KINDS[:5])


def number(node: Schema, random: Random) -> None:
    if node.get("type") in ("integer", "number"):
        node["type"] = {"integer": "number", "number": "integer"}[node["type"]]


def limit(node: Schema, random: Random) -> None:
    kind = node.get("type")
    if kind in ("integer", "number"):
        node[random.choice(["minimum", "maximum", "exclusiveMinimum"])] = random.choice([0, 1, 3, 10, 100])
    elif kind == "string":
        node[random.choice(["minLength", "maxLength"])] = random.choice([0, 1, 3, 12, 300])
    elif kind == "array":
        node[random.choice(["minItems", "maxItems"])] = random.choice([0, 1, 2, 5])


def unlimit(node: Schema, random: Random) -> None:
    limits = [key for key in node if key.startswith(("min", "max", "exclusive")) or key in ("pattern", "format")]
    if limits:
        del node[random.choice(limits)]


def enumerate_(node: Schema, random: Random) -> None:
    if isinstance(node.get("enum"), list):
        values = node["enum"]
        node["enum"] = [*values, "zz"] if random.random() < 0.5 or len(values) < 2 else values[1:]
    elif node.get("type") == "string":
        node["enum"] = ["a", "ab", "Oslo"]


def free(node: Schema, random: Random) -> None:
    node.pop("enum", None)
    node.pop("const", None)


def close(node: Schema, random: Random) -> None:
    if is_record(node):
        node["additionalProperties"] = random.choice([False, True, {"type": "string"}])


def unclose(node: Schema, random: Random) -> None:
    if is_record(node):
        node.pop("additionalProperties", None)


def or_null(node: Schema, random: Random) -> None:
    inner = copy.deepcopy(node)
    if not {"$defs", "definitions"} & node.keys() and node.get("type", "object") != "object":
        node.clear()
        node[random.choice(["anyOf", "oneOf"])] = [inner, {"type": "null"}]


def conditional(kind: str, keyword: str, choose: Callable[[Random], Any]) -> Callable[[Schema, Random], None]:
    """Return a mutation that states a keyword in schemas of one type."""

    def mutate(node: Schema, random: Random) -> None:
        if node.get("type") == kind:
            node[keyword] = choose(random)

    return mutate


pattern = conditional("string", "pattern", lambda random: random.choice(PATTERNS))
formatted = conditional("string", "format", lambda random: random.choice(FORMATS))
items = conditional("array", "items", small)


def rewrite(node: Schema, random: Random) -> None:
    """Rewrite a schema in an equivalent form."""
    if node.get("type") == "boolean":
        node.clear()
        node["enum"] = [True, False]
    elif len(node.get("enum", ())) > 1 and set(node) <= {"enum", "type"}:
        values = node.pop("enum")
        node["anyOf"] = [{"const": value} for value in values]
    elif node.get("properties"):
        node["properties"] = dict(reversed(node["properties"].items()))


MUTATIONS: tuple[Callable[[Schema, Random], None], ...] = (
    *(add, remove, rename, require, unrequire, widen, retype, number, limit, limit, unlimit, enumerate_, free, close),
    *(unclose, or_null, pattern, formatted, items, rewrite),
)


def referred(schema: Schema, random: Random) -> None:
    """Move a property to `$defs`."""
    if schema.get("properties") and "$defs" not in schema:
        name = random.choice(sorted(schema["properties"]))
        if "$ref" not in str(schema["properties"][name]):
            schema["$defs"] = {"Moved": schema["properties"][name]}
            schema["properties"][name] = {"$ref": "#/$defs/Moved"}


@dataclass(frozen=True)
class Pair:
    """A tool before and after changes."""

    old: Schema
    new: Schema


def pairs(tools: list[Schema], count: int, seed: int) -> Iterator[Pair]:
    """Yield pairs of tools: one to three random changes of their schemas, in either direction."""
    random = Random(seed)
    made = 0
    while made < count:
        old = wordless(random.choice(tools))
        new = copy.deepcopy(old)
        member = random.choice([key for key in ("inputSchema", "outputSchema") if key in new])
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            if random.random() < 0.05:
                referred(new[member], random)
            else:
                random.choice(MUTATIONS)(random.choice(list(places(new[member]))), random)
        if random.random() < 0.4:
            old, new = new, old
        sides = (old, new)
        if old != new and all(compiles(side[member]) and side[member].get("type") == "object" for side in sides):
            made += 1
            yield Pair(old, new)


# --- the judge --------------------------------------------------------------------------------------------------------


def compiles(schema: Any) -> bool:
    try:
        jsonschema_rs.validator_for(schema, offline=True)
    except ValueError:
        return False
    return True


def validator(schema: Any, *, formats: bool) -> Any:
    return jsonschema_rs.validator_for(schema, offline=True, validate_formats=formats)


def names(schema: Schema, depth: int) -> list[str]:
    """Return the names that a sender may give to members that it does not declare."""
    found = [UNDECLARED, *(("a", "limit") if depth and not schema.get("properties") else ())]
    return [*found, *(("limit", "mode", "extra", "a") if "additionalProperties" in schema else ())]


def sensible_names(schema: Schema, depth: int) -> list[str]:
    """Return the names of entries of maps; the arguments object is none."""
    rest = schema.get("additionalProperties", True)
    is_map = not schema.get("properties") or (isinstance(rest, dict) and bool(rest))
    return [UNDECLARED, "limit", "mode", "extra", "a"] if depth and is_map else []


def is_exact(value: Any) -> bool:
    """Return whether JSON keeps all integers in a value."""
    if isinstance(value, dict | list):
        return all(map(is_exact, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int | float) or abs(value) < 2**53


def relaxed(node: Any, *, names: bool = False) -> Any:
    """Return a schema of results that ignores unknown members."""
    if isinstance(node, dict):
        return {
            key: relaxed(value, names=key in MAPS and not names)
            for key, value in node.items()
            if names or key != "additionalProperties" or value is not False
        }
    return [relaxed(one) for one in node] if isinstance(node, list) else node


def refused(sender: Schema, receiver: Schema, random: Random, count: int, *, is_strict: bool) -> Any:
    """Return a list with a value of the sender that the receiver refuses; an empty list if none was found."""
    accepts, refuses = (validator(one, formats=is_strict) for one in (sender, receiver))
    instances = Instances(sender, random, near=[receiver], names=names if is_strict else sensible_names)
    for _ in range(count):
        value = instances.value()
        if (is_strict or is_exact(value)) and accepts.is_valid(value) and not refuses.is_valid(value):
            return [value]
    return []


def breaks(pair: Pair, random: Random, *, is_strict: bool, count: int = 300) -> Any:
    """Return a list with a value that shows that callers of the old tool break; empty if none was found."""
    found = refused(pair.old["inputSchema"], pair.new["inputSchema"], random, count, is_strict=is_strict)
    if not found and "outputSchema" in pair.old and "outputSchema" in pair.new:
        promised = pair.old["outputSchema"] if is_strict else relaxed(pair.old["outputSchema"])
        found = refused(pair.new["outputSchema"], promised, random, count, is_strict=is_strict)
    return found
