"""Exact types of JSON Schemas: they accept all values of a schema, and no others but for the limits that they state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_bindgen.contract.document import contract_of
from mcp_bindgen.contract.exact import VALUE, ExactReader, exact_types
from mcp_bindgen.contract.names import Scope
from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.examples import fits
from mcp_bindgen.ir.model import AnyValue, Array, Const, Field, Map, Object, Ref, Scalar, Tuple, Type, Union, map_parts
from mcp_bindgen.spec import BadInput
from tests.harness.contract_strategies import PROPERTY_NAMES, inputs, tool
from tests.harness.effort import examples
from tests.harness.json_instances import Instances, odd_names

TEXT = {"type": "string"}
STRING, NULL = Scalar("string"), Scalar("null")
UNCHECKED = [
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
    HealthCheck.filter_too_much,
]


def strict(types: Protocol) -> Protocol:
    """Return types for which `fits` demands constant members too, which models fill in."""

    def strictly(type: Type) -> Type:
        return Union((type,)) if isinstance(type, Const) else map_parts(type, strictly)

    found = {name: replace(one, type=strictly(one.type)) for name, one in types.definitions.items()}
    return replace(types, definitions=found)


@pytest.mark.full
@settings(max_examples=examples(30, 400), deadline=None, suppress_health_check=UNCHECKED)
@given(st.data())
def test_a_type_accepts_exactly_the_values_of_its_schema_if_it_states_no_limit(data: st.DataObject) -> None:
    schema = data.draw(inputs())
    try:
        contract_of(tool(schema))
    except BadInput:
        return
    reader, types = ExactReader(Scope()), strict(exact_types(schema))
    reader.define(schema, VALUE.name)
    has_limits = any(reader.limits.values())
    accepts = jsonschema_rs.validator_for(schema, validate_formats=False)
    instances = Instances(schema, names=odd_names(*PROPERTY_NAMES)).strategy()
    for _ in range(8):
        document = data.draw(instances)
        if accepts.is_valid(document):
            assert fits(types, VALUE, document)
        elif not has_limits:
            assert not fits(types, VALUE, document)


def read(schema: Any) -> tuple[Any, dict[str, Any], list[str]]:
    """Return the type of a member with `schema`, the types of other definitions, and what they do not express."""
    reader = ExactReader(Scope())
    reader.define({"type": "object", "properties": {"a": schema}, "$defs": DEFINITIONS}, "Value")
    types: dict[str, Any] = {name: one.type for name, one in reader.definitions.items()}
    return types.pop("Value").fields[0].type, types, [text for texts in reader.limits.values() for text in texts]


DEFINITIONS: dict[str, Any] = {
    "Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}, "additionalProperties": False},
    "Name": {"type": "string", "minLength": 1},
    "Part": {"$id": "urn:part", "type": "null"},
    "Whole": {"$id": "urn:whole", "type": "array", "items": {"$ref": "#"}},
}
NODE = Object((Field("next", Ref("ValueNode"), False),), None)
KINDED = {"oneOf": [{"properties": {"kind": {"const": kind}}, "required": ["kind"]} for kind in "xy"]}


@pytest.mark.parametrize(
    ("schema", "type", "more"),
    [
        (True, AnyValue(), {}),
        ({"type": ["array", "null"], "items": TEXT}, Union((Array(STRING), NULL)), {}),
        ({"enum": ["x", 1.0, None, True, 1]}, Union((Const(("x", 1, True)), NULL)), {}),
        ({"const": {"b": "x"}}, Ref("ValueA"), {"ValueA": Object((Field("b", Const(("x",)), True),), None)}),
        ({"type": "string", "enum": ["x", 1, "y"], "not": {"const": "y"}}, Const(("x",)), {}),
        (
            {"prefixItems": [TEXT, {"type": "null"}], "items": False, "type": "array", "minItems": 1},
            (1, (STRING, NULL), None),
            {},
        ),
        ({"prefixItems": [TEXT], "type": "array"}, (0, (STRING,), AnyValue()), {}),
        ({"items": TEXT, "type": "array", "minItems": 2, "maxItems": 2}, (2, (STRING, STRING), None), {}),
        ({"type": "object", "additionalProperties": TEXT}, Map(STRING), {}),
        ({"type": "object", "patternProperties": {"^x": TEXT}, "additionalProperties": False}, Map(STRING), {}),
        ({"$ref": "#/$defs/Node"}, Ref("ValueNode"), {"ValueNode": NODE}),
        ({"$ref": "urn:part"}, Ref("ValuePart"), {"ValuePart": NULL}),
        ({"$ref": "urn:whole"}, AnyValue(), {}),
        ({"type": "object", "properties": {"b": TEXT}, **KINDED}, Union((Ref("ValueA"), Ref("ValueA2"))), None),
        ({"if": {"type": "string"}, "then": TEXT, "else": {"type": "null"}}, Union((STRING, NULL)), {}),
        ({"allOf": [{"type": ["string", "null"]}, {"type": ["null", "integer"]}]}, NULL, {}),
    ],
)
def test_types_are_as_narrow_as_types_can_be(schema: Any, type: Any, more: dict[str, Any] | None) -> None:
    found, others, _ = read(schema)
    if isinstance(found, Tuple):
        assert (found.least, found.prefix, found.rest) == type
    else:
        assert found == type
    if more is not None:
        assert others == more


def test_the_rest_is_stated_as_limits() -> None:
    for schema, limits in [
        ({"type": "string", "minLength": 1, "pattern": "^a"}, ["minLength 1", 'pattern "^a"']),
        (
            {"type": "array", "items": {"type": "integer", "minimum": 1}, "uniqueItems": True},
            ["uniqueItems true", "minimum 1"],
        ),
        ({"type": "object", "propertyNames": {"maxLength": 2}}, ['propertyNames {"maxLength": 2}']),
        ({"$ref": "#/$defs/Name"}, ["minLength 1"]),
        ({"not": {"type": "string", "minLength": 1}}, ['not {"type": "string", "minLength": 1}']),
        ({"oneOf": [TEXT, {"type": "string"}]}, ["branches of oneOf may overlap"]),
        ({"$ref": "urn:whole"}, ['$ref "urn:whole"']),
    ]:
        assert read(schema)[2] == limits
