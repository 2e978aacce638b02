"""No verdict contradicts a value that callers may send: random changes, judged by a JSON Schema validator."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import jsonschema_rs
import pytest

from mcp_bindgen.contract.comparison.witness import witness
from mcp_bindgen.drift.callers import callers
from mcp_bindgen.drift.changes import Part, Relation, Verdict, relate
from tests.harness.effort import selection
from tests.harness.json_instances import Instances, Schema, map_names

NAMES = (
    *("description", "title", "$ref", "enum", "default", "type", "properties", "$defs", "definitions", "required"),
    *(
        "patternProperties",
        "dependentSchemas",
        "dependentRequired",
        "dependencies",
        "const",
        "not",
        "format",
        "$schema",
    ),
)
LIMIT = 2**53 - 1


class Dice:
    """Random schemas whose members have the names of keywords, and changes of them."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def schema(self, depth: int = 0) -> Any:
        dice = self.dice
        limits: dict[str, list[Schema]] = {
            "string": [{}, {"maxLength": 3}, {"minLength": 1}, {"pattern": "^[a-z]*$"}, {"format": "date"}],
            "integer": [{}, {"minimum": 0}, {"maximum": LIMIT}, {"exclusiveMinimum": -1}, {"multipleOf": 2}],
            "number": [{}, {"minimum": 0}, {"maximum": 10.5}],
        }
        kinds = [*limits, "boolean", "enum", "any", "nullable", "map", "reference"]
        kinds += ["record", "record", "array", "union", "all", "tuple", "opposite"] if depth < 3 else []
        match kind := dice.choice(kinds):
            case "string" | "integer" | "number":
                return {"type": kind, **dice.choice(limits[kind])}
            case "boolean":
                return {"type": "boolean"}
            case "enum":
                return {"enum": dice.sample(["a", "b", "", 1, 2, None, True, 1.5], 3)}
            case "any":
                return dice.choice([{}, True, {"minLength": 1}, {"minimum": 1}])
            case "nullable":
                return {"type": [dice.choice(["string", "integer", "object"]), "null"]}
            case "map":
                rest = dice.choice([{}, {"additionalProperties": dice.choice([True, {"type": "string"}, False])}])
                return {"type": "object", **rest, **dice.choice([{}, {"propertyNames": {"maxLength": 2}}])}
            case "reference":
                return {"$ref": f"#/$defs/{dice.choice(['a', 'b'])}"}
            case "array":
                return {"type": "array", "items": self.schema(depth + 1), **dice.choice([{}, {"maxItems": 2}])}
            case "tuple":
                rest = dice.choice([{}, {"items": False}, {"items": self.schema(depth + 1)}])
                return {"type": "array", "prefixItems": [self.schema(depth + 1)], **rest}
            case "union":
                return {dice.choice(["anyOf", "oneOf"]): [self.schema(depth + 1) for _ in range(2)]}
            case "all":
                return {"allOf": [self.record(depth + 1), self.record(depth + 1)]}
            case "opposite":
                return {"type": "string", "not": {"enum": ["a"]}}
            case _:
                return self.record(depth + 1)

    def record(self, depth: int = 1) -> Schema:
        dice = self.dice
        names = dice.sample(NAMES, dice.randint(1, 3))
        found: Schema = {"type": "object", "properties": {name: self.schema(depth) for name in names}}
        found["required"] = [name for name in names if dice.random() < 0.4]
        more: list[Schema] = [
            {"additionalProperties": False},
            {"additionalProperties": {"type": "string"}},
            {"unevaluatedProperties": False},
            {"patternProperties": {"^[dt]": self.schema(3)}},
            {"dependentRequired": {names[0]: [names[-1]]}},
            {"dependentSchemas": {names[0]: {"properties": {names[-1]: self.schema(3)}}}},
            {"dependencies": {names[0]: {"properties": {"title": {"type": "string"}}}}},
            {"if": {"required": names[:1]}, "then": {"properties": {dice.choice(NAMES): self.schema(3)}}},
            {"minProperties": 1},
            {"oneOf": [{"required": [name]} for name in names]},
        ]
        return {**found, **(dice.choice(more) if dice.random() < 0.4 else {})}

    def root(self) -> Schema:
        definitions = {"a": self.record(2), "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}}
        return {**self.record(), "$defs": definitions}

    def changed(self, schema: Schema) -> Schema:
        """Return a copy with one or two differences."""
        found = copy.deepcopy(schema)
        for _ in range(self.dice.choice([1, 1, 2])):
            node = self.dice.choice(list(nodes(found)))
            word = self.dice.choice([*(set(node) - {"$defs"}), "additionalProperties"])
            match self.dice.randrange(4):
                case 0:
                    node.pop(word, None)
                case 1:
                    node |= {key: one for key, one in self.record(2).items() if key not in node}
                case 2 if node.get("properties"):
                    node["properties"][self.dice.choice(NAMES)] = self.schema(2)
                case _:
                    node["additionalProperties"] = self.dice.choice([False, True, {"type": "integer"}])
        return found


def nodes(schema: Any) -> Iterator[Schema]:
    """Yield a schema and its subschemas for members, items and alternatives."""
    if not isinstance(schema, dict):
        return
    yield schema
    for word in ("properties", "patternProperties", "dependentSchemas", "$defs"):
        for part in schema.get(word, {}).values():
            yield from nodes(part)
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ()), schema.get("items")):
        yield from nodes(part)


def is_sensible(root: Schema, schemas: list[Any], value: Any, *, is_call: bool = False) -> bool:
    """Return whether a sensible caller sends a valid value: only members that are named for it, and safe integers."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return abs(value) <= LIMIT
    parts = [one for one in schemas if isinstance(one, dict)]
    for part in parts:  # grows in the loop
        inner = [*part.get("allOf", ()), *part.get("anyOf", ()), *part.get("oneOf", ())]
        inner += [part[word] for word in ("then", "else") if word in part]
        needs = {**part.get("dependentSchemas", {}), **part.get("dependencies", {})}
        inner += [one for name, one in needs.items() if isinstance(value, dict) and name in value]
        if "$ref" in part:
            inner.append(root["$defs"][part["$ref"].rpartition("/")[2]])
        parts += [
            one for one in inner if isinstance(one, dict) and fits({**one, "$defs": root.get("$defs", {})}, value)
        ]
    if isinstance(value, list):
        first = [one for part in parts for one in part.get("prefixItems", ())]
        rest = [part["items"] for part in parts if "items" in part]
        each = [[first[index]] if index < len(first) else rest for index in range(len(value))]
        return all(map(is_sensible, [root] * len(value), each, value))
    if not isinstance(value, dict):
        return True
    names = {name for part in parts for name in (*part.get("properties", ()), *part.get("required", ()))}
    words = ("dependentSchemas", "dependencies")
    dependent = [one for part in parts for word in words for one in part.get(word, {}).values()]
    is_record = any(
        isinstance(one, dict) and "properties" in one for one in dependent
    )  # it names members of other values
    patterns = {one for part in parts for one in part.get("patternProperties", ())}
    rests = [part.get("additionalProperties", True) for part in parts]
    stated = [] if is_call else [one for one in rests if one is not True and one != {}]
    for name, member in value.items():
        own = [part["properties"][name] for part in parts if name in part.get("properties", ())]
        own += [one for part in parts for key, one in part.get("patternProperties", {}).items() if re.search(key, name)]
        is_free = name in names or bool(stated) or not (names or patterns or is_call or is_record)
        if not is_sensible(root, own or stated, member) or not (own or is_free):
            return False
    return True


def fits(schema: Any, value: Any) -> bool:
    return jsonschema_rs.validator_for(schema).is_valid(value)


def relaxed(schema: Any) -> Any:
    """Return a schema of results whose unknown members are ignored."""
    found = copy.deepcopy(schema)
    for node in nodes(found):
        for word in ("additionalProperties", "unevaluatedProperties"):
            if node.get(word) is False:
                del node[word]
        if "oneOf" in node:
            node["allOf"] = [*node.get("allOf", ()), {"anyOf": node.pop("oneOf")}]
    return found


@pytest.mark.parametrize("profile", ["sensible", "strict"])
@pytest.mark.parametrize("part", ["arguments", "result"])
def test_no_value_contradicts_a_verdict(part: Part, profile: str) -> None:
    found: dict[Verdict, int] = dict.fromkeys(Verdict, 0)
    for seed in range(selection(150, 1500)):
        dice = Dice(seed)
        old = dice.root()
        new = dice.changed(old)
        with suppress(ValueError):
            check(dice, old, new, part, profile, found, json.dumps({"seed": seed, "old": old, "new": new}, indent=1))
    assert all(found[one] >= 10 for one in (Verdict.BREAKING, Verdict.COMPATIBLE, Verdict.NOTATION)), found
    assert found[Verdict.UNPROVEN] < sum(found.values()) / 10, found


def check(dice: Dice, old: Schema, new: Schema, part: Part, profile: str, found: Any, context: str) -> None:
    (related,) = relate([Relation(part, old, new)], callers(profile), search=witness)
    found[related.verdict] += 1
    sender, receiver = related.schemas
    is_call, is_strict = part == "arguments", profile == "strict"
    receiver = receiver if is_call or is_strict else relaxed(receiver)
    accepts, refuses = jsonschema_rs.validator_for(sender), jsonschema_rs.validator_for(receiver)

    def breaks(value: Any) -> bool:
        is_sent = is_strict or is_sensible(sender, [sender], value, is_call=is_call)
        return accepts.is_valid(value) and not refuses.is_valid(value) and is_sent

    if related.witness is not None:
        assert breaks(related.witness.value), f"{context}\n{related.witness}"
    if related.verdict is Verdict.NOTATION and is_call:
        check_reverse(dice, new, old, context, is_strict=is_strict)
    if related.verdict <= Verdict.COMPATIBLE:
        values = Instances(sender, dice.dice, near=[receiver], names=map_names)
        for _ in range(40):
            value = values.value()
            assert not breaks(value), f"{context}\n{related.verdict.name} {value}"


def check_reverse(dice: Dice, new: Schema, old: Schema, context: str, *, is_strict: bool) -> None:
    accepts, refuses = jsonschema_rs.validator_for(new), jsonschema_rs.validator_for(old)
    values = Instances(new, dice.dice, near=[old], names=map_names)
    for _ in range(20):
        value = values.value()
        is_sent = accepts.is_valid(value) and (is_strict or is_sensible(new, [new], value, is_call=True))
        assert refuses.is_valid(value) or not is_sent, f"{context}\nnotation {value}"
