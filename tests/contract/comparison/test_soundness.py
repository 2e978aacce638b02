"""The comparison of contracts misses no break: random changes of schemas, judged by a JSON Schema validator."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import jsonschema_rs
import pytest
from mcp_bindgen.app.inclusion import Answer, prove
from mcp_bindgen.contract.comparison.inclusion import included
from mcp_bindgen.contract.comparison.verdicts import ContractComparison

from mcp_bindgen.contract.comparison.compare import compare_contracts
from mcp_bindgen.contract.document import contract_of
from tests.harness.commands import shuffled
from tests.harness.effort import selection
from tests.harness.json_instances import Instances
from tests.harness.small_schemas import Schema, record

TEXT: Schema = {"type": "string"}


def forecast(arguments: Schema, result: Schema | None = None) -> Schema:
    """Return a contract with one tool."""
    output = {} if result is None else {"outputSchema": result}
    return {"tools": [{"name": "get-forecast", "inputSchema": arguments, **output}]}


def compared(old: Schema, new: Schema) -> ContractComparison:
    return compare_contracts(contract_of(old), contract_of(new))


class Dice:
    """Random schemas and mutations of them."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def schema(self, depth: int = 0) -> Schema:
        kinds = ["string", "integer", "number", "boolean", "enum", "const", "nullable"]
        kinds += ["object", "array", "union"] if depth < 2 else []
        kind = self.dice.choice(kinds)
        match kind:
            case "string":
                limits: list[Schema] = [
                    {},
                    {"maxLength": 5},
                    {"minLength": 1},
                    {"pattern": "^[a-z]*$"},
                    {"format": "date"},
                ]
                return {"type": "string", **self.dice.choice(limits)}
            case "integer" | "number":
                limits = [{}, {"minimum": 0}, {"maximum": 10}, {"multipleOf": 2}, {"exclusiveMinimum": -1}]
                return {"type": kind, **self.dice.choice(limits)}
            case "boolean":
                return {"type": "boolean"}
            case "enum":
                return {"enum": self.dice.sample(["a", "b", "c", 1, 2, None, True], 3)}
            case "const":
                return {"const": self.dice.choice(["a", 1, 1.5, {"a": 1}])}
            case "nullable":
                return {"type": ["string", "null"]}
            case "array":
                return {"type": "array", "items": self.schema(depth + 1), **self.dice.choice([{}, {"maxItems": 3}])}
            case "union":
                return {self.dice.choice(["anyOf", "oneOf"]): [self.schema(depth + 1) for _ in range(2)]}
            case _:
                return self.object(depth + 1)

    def object(self, depth: int = 0) -> Schema:
        names = self.dice.sample(["a", "b", "c", "d-e"], self.dice.randint(1, 3))
        found = record("", **{name: self.schema(depth) for name in names})
        found["required"] = [name for name in names if self.dice.random() < 0.4]
        if self.dice.random() < 0.2:
            found["additionalProperties"] = self.dice.choice([False, TEXT])
        return found

    def mutated(self, schema: Schema) -> Schema:
        """Return a copy with one difference."""
        found = copy.deepcopy(schema)
        nodes = [node for node in inner_schemas(found) if isinstance(node, dict)]
        for _ in range(self.dice.choice([1, 1, 2])):
            self.mutate(self.dice.choice(nodes))
        return found

    def mutate(self, node: Schema) -> None:
        if "properties" in node:
            names = list(node["properties"])
            match self.dice.randrange(8):
                case 0:
                    node["required"] = [name for name in names if self.dice.random() < 0.5]
                case 1 if len(names) > 1:
                    node["properties"].pop(names[0])
                    node["required"] = [name for name in node.get("required", []) if name != names[0]]
                case 2:
                    node["properties"]["new"] = self.schema(2)
                    node["required"] = sorted({*node.get("required", []), *self.dice.choice([["new"], []])})
                case 3:
                    node["additionalProperties"] = self.dice.choice([False, True, TEXT])
                case 4:
                    node["minProperties"] = 1
                case 5:
                    node["dependentRequired"] = {names[0]: [names[-1]]}
                case 6:
                    node["not"] = {"required": names}
                case _:
                    node["if"], node["then"] = {"required": names[:1]}, {"required": names[-1:]}
        elif self.dice.random() < 0.5:
            node.clear()
            node.update(self.schema(2))
        elif "enum" in node:
            node["enum"] = self.dice.sample(["a", "b", "c", 1, 2, None, True], 3)
        elif node.get("type") == "array":
            node.update(self.dice.choice([{"uniqueItems": True}, {"minItems": 1}, {"contains": {"type": "string"}}]))
        elif node.get("type") in ("integer", "number"):
            node.update(self.dice.choice([{"minimum": 1}, {"maximum": 5}, {"multipleOf": 3}, {"type": "number"}]))
        elif node.get("type") == "string":
            node.update(self.dice.choice([{"maxLength": 2}, {"pattern": "^[a-c]*$"}, {"minLength": 2}]))
        elif "anyOf" in node:
            node["anyOf"] = node["anyOf"][:1]
        else:
            node["not"] = {"type": "string"}


def inner_schemas(schema: Schema) -> list[Any]:
    """Return a schema and its subschemas."""
    found: list[Any] = [schema]
    for child in schema.get("properties", {}).values():
        found += inner_schemas(child)
    for keyword in ("anyOf", "oneOf"):
        for child in schema.get(keyword, []):
            found += inner_schemas(child)
    return found + (inner_schemas(schema["items"]) if "items" in schema else [])


def refused_example(dice: Dice, sender: Schema, receiver: Schema) -> tuple[Any, ...]:
    """Return a 1-tuple with a value that is valid for the sender only; an empty tuple if none was found."""
    accepts, refuses = jsonschema_rs.validator_for(sender), jsonschema_rs.validator_for(receiver)
    instances = Instances(sender, dice.dice, near=[receiver], names=None)
    for _ in range(60):
        value = instances.value()
        if accepts.is_valid(value) and not refuses.is_valid(value):
            return (value,)
    return ()


@pytest.mark.full
@pytest.mark.parametrize("batch", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_every_break_in_random_contracts_is_found(batch: int) -> None:
    breaks = 0
    for seed in range(batch * 150, batch * 150 + 150):
        dice = Dice(seed)
        old = dice.object()
        new = dice.mutated(old)
        plain = record()
        taken = compared(forecast(old), forecast(new))
        given = compared(forecast(plain, old), forecast(plain, new))
        context = json.dumps({"seed": seed, "old": old, "new": new}, indent=1)
        example = refused_example(dice, old, new)
        if example:
            breaks += 1
            assert taken.breaking, f"{context}\n{example}"
            assert given.reverse_breaking, f"{context}\n{example}"
        example = refused_example(dice, new, old)
        if example:
            assert taken.reverse_breaking, f"{context}\n{example}"
            assert given.breaking, f"{context}\n{example}"
        for finding in (*taken.findings, *given.findings):
            if finding.example is not None:
                instance = finding.example.instance
                assert finding.example.old_accepts == jsonschema_rs.is_valid(old, instance), context
                assert finding.example.new_accepts == jsonschema_rs.is_valid(new, instance), context
    assert breaks > 40  # the random pairs contain enough breaks to mean something


@pytest.mark.full
def test_identical_random_contracts_have_no_findings() -> None:
    for seed in range(100):
        schema = Dice(seed).object()
        contract = forecast(schema, schema)
        assert not compared(contract, shuffled(contract, seed)).findings, seed


def test_members_with_names_of_keywords_are_no_keywords() -> None:
    members = {"not": {"const": {"if": 1}}, "contains": {"type": "string"}}
    wider = {"type": "object", "properties": {**members, "more": {"type": "integer"}}}
    assert prove([({"type": "object", "properties": members}, wider)]) == [Answer.YES]


def test_inclusion_proofs_and_counterexamples_are_correct() -> None:
    """An inclusion that is proved has no counterexample, and a reported counterexample is real."""
    answers: set[Answer] = set()
    for seed in range(selection(60, 300)):
        dice = Dice(seed)
        old = dice.object()
        new = dice.mutated(old)
        found = included(old, new)
        answers.add(found.answer)
        if found.answer is Answer.YES:
            assert not refused_example(dice, old, new), seed
        for example in found.example:
            assert jsonschema_rs.is_valid(old, example)
            assert not jsonschema_rs.is_valid(new, example)
    assert {Answer.YES, Answer.NO} <= answers
