"""The steps of validation: a schema is too complex by whatever keyword it applies many schemas."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_bindgen.app import Complexity
from tests.harness.effort import each

SCHEMAS = (
    *("not", "if", "then", "else", "items", "contains", "additionalItems", "unevaluatedItems"),
    *("additionalProperties", "unevaluatedProperties"),
)
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
MAPS = ("properties", "patternProperties", "dependentSchemas", "dependencies")


@each(
    ("word", "form"),
    [*((word, "schema") for word in SCHEMAS), *((word, "list") for word in LISTS), *((word, "map") for word in MAPS)],
)
def test_each_keyword_that_applies_schemas_is_counted(word: str, form: str) -> None:
    schema: dict[str, Any] = {}
    for _ in range(10):
        forms: dict[str, dict[str, Any]] = {
            "schema": {"allOf": [{word: schema}, {word: schema}]},
            "list": {word: [schema, schema]},
            "map": {word: {"a": schema, "b": schema}},
        }
        schema = forms[form]
    assert Complexity(schema).exceeds(1000)
    assert not Complexity(schema).exceeds(100_000)


@pytest.mark.parametrize("word", ["prefixItems", "items"])
def test_a_tuple_takes_the_steps_of_the_items_of_a_value(word: str) -> None:
    pair = Complexity({word: [{"allOf": [{}] * 10}] * 5})
    assert [pair.steps(1000, [0] * length) for length in (0, 1, 5, 9)] == [1, 12, 56, 56]
    assert pair.steps(1000) == 56
