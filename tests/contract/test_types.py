"""Names and types of contracts: each type accepts every value that its schema accepts."""

from __future__ import annotations

import ast
import inspect
import json
import keyword
import sys
import time
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from mcp_bindgen import app
from mcp_bindgen.contract import names
from mcp_bindgen.contract.code.python_contract import RESERVED, lower_contract, stub
from mcp_bindgen.contract.document import contract_of, read_contract, write
from mcp_bindgen.contract.model import Contract
from mcp_bindgen.contract.types import is_visible
from mcp_bindgen.emit.python import naming, types
from mcp_bindgen.emit.python.environment import style
from mcp_bindgen.emit.python.imports import resolved
from mcp_bindgen.ir.model import AnyValue, Array, Const, Field, Map, Object, Ref, Scalar, Union
from mcp_bindgen.ir.naming import class_name
from mcp_bindgen.spec import BadInput, DiagnosticContext
from tests.harness import hostile_contract as hostile
from tests.harness.contract_strategies import PROPERTY_NAMES, inputs, taking, tool
from tests.harness.effort import examples
from tests.harness.json_instances import Instances, odd_names

TEXT = {"type": "string"}
STRING = Scalar("string")
UNCHECKED = [
    *(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example, HealthCheck.filter_too_much),
    HealthCheck.function_scoped_fixture,
]


def argument(contract: Contract, wire: str = "a") -> Field:
    """Return a field of the arguments of the first tool."""
    type = contract.types.definitions[contract.tools[0].arguments].type
    assert isinstance(type, Object)
    found = type.field(wire)
    assert found is not None
    return found


def lowered(schema: Any, **members: Any) -> Any:
    """Return the type of an argument with `schema`."""
    return argument(contract_of(taking(schema, **members))).type


def imported(contract: Contract, name: str = "contract_models") -> ModuleType:
    """Return the models of a contract as a module."""
    text = resolved(types.emit(lower_contract(contract).types, "# for a test", types.CONTRACT))
    spec = spec_from_loader(name, loader=None)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # pydantic resolves quoted annotations in this module
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def usable(document: Any) -> Contract:
    """Return the contract of a random document; its references may be circular or dangling by chance."""
    try:
        return contract_of(document)
    except BadInput as error:
        assume("circle" not in str(error) and "leads nowhere" not in str(error))
        raise


# --- the key property -----------------------------------------------------------------------------------------


def same(one: Any, other: Any) -> bool:
    """Return True if two JSON documents are equal; `true` differs from 1, and `1.0` does not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@pytest.mark.full
@settings(max_examples=examples(20, 200), deadline=None, suppress_health_check=UNCHECKED)
@given(st.data())
def test_a_model_accepts_and_keeps_every_value_that_its_schema_accepts(data: st.DataObject) -> None:
    schema = data.draw(inputs())
    contract = usable(tool(schema))
    model = TypeAdapter(getattr(imported(contract), contract.tools[0].arguments))
    accepts = jsonschema_rs.validator_for(schema)
    instances = Instances(schema, names=odd_names(*PROPERTY_NAMES)).strategy()
    for _ in range(8):
        document = data.draw(instances)
        if accepts.is_valid(document):
            assert same(json.loads(model.dump_json(model.validate_json(json.dumps(document)))), document)


KINDS_OF_MEMBERS = ({"type": "string"}, {"type": ["string", "null"]}, {"type": "integer"})
MEMBERS = st.dictionaries(st.sampled_from("de"), st.sampled_from(KINDS_OF_MEMBERS), max_size=2)


@pytest.mark.full
@settings(max_examples=examples(60, 400), deadline=None)
@given(
    st.sampled_from(["anyOf", "oneOf"]),
    st.lists(MEMBERS, min_size=2, max_size=3),
    st.dictionaries(st.sampled_from("de"), st.sampled_from([None, "x", 1]), max_size=2),
    st.booleans(),
)
def test_a_union_keeps_every_null_that_an_alternative_allows(
    keyword: str, alternatives: list[dict[str, Any]], document: dict[str, Any], deep: bool
) -> None:
    branches: list[Any] = [{"type": "object", "properties": members} for members in alternatives]
    if deep:
        branches, document = [{"type": "object", "properties": {"in": one}} for one in branches], {"in": document}
    schema = {"type": "object", "properties": {"v": {keyword: branches}}}
    contract = usable(tool(schema))
    model = TypeAdapter(getattr(imported(contract), contract.tools[0].arguments))
    if jsonschema_rs.is_valid(schema, {"v": document}):
        assert json.loads(model.dump_json(model.validate_json(json.dumps({"v": document})))) == {"v": document}


# --- types ----------------------------------------------------------------------------------------------------


def test_schemas_become_types() -> None:
    for schema, type in [
        (True, AnyValue()),
        (False, AnyValue()),
        ({}, AnyValue()),
        ({"type": "string", "format": "date", "pattern": "^a"}, STRING),
        ({"type": ["string", "null"]}, Union((STRING, Scalar("null")))),
        ({"type": "string", "nullable": True}, Union((STRING, Scalar("null")))),
        ({"const": "x"}, Const(("x",))),
        ({"enum": ["x", "y", "x"]}, Const(("x", "y"))),
        ({"enum": ["x", None, True, 2]}, Union((Const(("x",)), Scalar("integer"), Scalar("null"), Scalar("boolean")))),
        ({"anyOf": [{"const": "x"}, {"const": True}, {"const": "x"}]}, Const(("x", True))),
        ({"type": "string", "enum": ["x", "y"], "not": {"const": "y"}}, Const(("x", "y"))),
        ({"type": "object"}, Map(AnyValue())),
        ({"type": "object", "additionalProperties": TEXT}, Map(STRING)),
        ({"type": "object", "additionalProperties": TEXT, "patternProperties": {"^x": {}}}, Map(AnyValue())),
        ({"type": "object", "properties": {"b": TEXT}}, Ref("TInputA")),
        ({"properties": {"b": TEXT}}, AnyValue()),  # it accepts 1 too
        ({"type": "array", "items": TEXT}, Array(STRING)),
        ({"type": "array", "prefixItems": [TEXT]}, Array(AnyValue())),
        (
            {"type": "array", "prefixItems": [TEXT, {"type": "null"}], "items": False},
            Array(Union((STRING, Scalar("null")))),
        ),
        (
            {"type": "array", "prefixItems": [TEXT], "items": {"type": "null"}},
            Array(Union((STRING, Scalar("null")))),
        ),
        ({"anyOf": [TEXT, {"type": "object", "properties": {"b": {}}}]}, Union((STRING, Ref("TInputA")))),
        ({"type": ["string", "integer"], "allOf": [{"type": "number"}]}, Scalar("integer")),
        ({"allOf": [{"$ref": "#/$defs/Node"}], "description": "words"}, Ref("TInputNode")),
        ({"$ref": "#/$defs/Node", "type": "object"}, Ref("TInputNode")),
        ({"$ref": "#node"}, Ref("TInputNode")),
        ({"$ref": "#"}, Ref("TInput")),
        ({"$ref": "urn:part"}, Ref("TInputPart")),
        ({"$ref": "urn:whole"}, AnyValue()),
    ]:
        node = {"$anchor": "node", "type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
        part = {"$id": "urn:part", "type": "string"}
        whole = {"$id": "urn:whole", "type": "array", "items": {"$ref": "#"}}
        assert lowered(schema, **{"$defs": {"Node": node, "Part": part, "Whole": whole}}) == type


def test_draft_07_ignores_keywords_beside_a_reference() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    pair = {"type": "array", "items": [TEXT, TEXT], "additionalItems": False, "prefixItems": [{"type": "null"}]}
    hidden = {"$ref": "#/definitions/A", "type": "null"}
    members: dict[str, Any] = {"$schema": draft, "definitions": {"A": pair}}
    contract = contract_of(taking(hidden, **members))
    assert argument(contract).type == Ref("TInputA")
    assert contract.types.definitions["TInputA"].type == Array(STRING)
    for tuple_, type in (
        ({"items": [TEXT], "additionalItems": {"type": "null"}}, Union((STRING, Scalar("null")))),
        ({"items": [TEXT]}, AnyValue()),
        ({"prefixItems": [TEXT], "additionalItems": False}, AnyValue()),
    ):
        assert argument(contract_of(taking({"type": "array", **tuple_}, **{"$schema": draft}))).type == Array(type)


def test_the_parts_of_an_all_of_become_one_object() -> None:
    base = {"type": "object", "properties": {"b": {}, "c": TEXT}, "required": ["c"]}
    more = {"properties": {"b": {"type": "null"}}, "required": ["d"]}
    contract = contract_of(taking({"allOf": [{"$ref": "#/$defs/Base"}, more]}, **{"$defs": {"Base": base}}))
    merged = contract.types.definitions["TInputA"].type
    assert isinstance(merged, Object)
    fields = [(field.wire, field.type, field.required) for field in merged.fields]
    assert fields == [("b", Scalar("null"), False), ("c", STRING, True), ("d", AnyValue(), True)]


def test_valid_scalar_defaults_become_field_defaults() -> None:
    for schema, default in [
        ({"type": "integer", "default": 2}, 2),
        ({"type": "integer", "default": 2.0}, 2),
        ({"type": "integer", "default": "2"}, None),
        ({"type": "integer", "default": 2, "maximum": 1}, None),
        ({"type": "boolean", "default": False}, False),
        ({"type": ["string", "null"], "default": None}, None),
        ({"type": "array", "default": []}, None),
        ({"$ref": "#/$defs/Colour", "default": "red"}, "red"),
        ({"$ref": "#/$defs/Colour", "default": "grey"}, None),
        ({"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/Colour"}], "default": "red"}, "red"),
    ]:
        contract = contract_of(taking(schema, **{"$defs": {"Colour": {"enum": ["red", "blue"]}}}))
        found = argument(contract).default
        assert (found, type(found)) == (default, type(default))
        model = getattr(imported(contract), contract.tools[0].arguments)
        assert model.model_validate_json("{}").a == default
        assert model.model_validate_json("{}").model_dump_json() == "{}"


def test_contract_entries_get_names_and_types() -> None:
    empty = {"type": "object"}
    greeting = {"name": "greeting", "arguments": [{"name": "a b", "enum": ["x"], "required": True}]}
    note = {"uriTemplate": "note://{id}{/path*}{?q*,r}", "name": "note", "variables": [{"name": "r", "enum": ["y"]}]}
    contract = contract_of(
        {
            "revision": "2025-11-25",
            "serverInfo": {"name": "s", "version": "1"},
            "instructions": "Ask.",
            "tools": [{"name": "get-sum", "title": "Sums", "inputSchema": empty, "outputSchema": empty}],
            "prompts": [greeting, {"name": "no"}],
            "resources": [{"uri": "file:///readme", "name": "readme"}],
            "resourceTemplates": [note],
        }
    )
    (tool,), (prompt, bare), (resource,) = contract.tools, contract.prompts, contract.resources
    (template,) = contract.templates
    stub = lower_contract(contract).stub
    assert (stub(tool), tool.arguments, tool.output, tool.description) == (
        "get_sum",
        "GetSumInput",
        "GetSumOutput",
        "Sums",
    )
    assert (stub(prompt), prompt.arguments) == ("prompt_greeting", "GreetingArguments")
    assert (stub(bare), bare.arguments) == ("prompt_no", "")
    assert (stub(resource), resource.key) == ("read_readme", "file:///readme")
    assert (stub(template), template.arguments) == ("read_note", "NoteVariables")
    types = {name: definition.type for name, definition in contract.types.definitions.items()}
    assert types["GetSumInput"] == Object(())
    assert types["GreetingArguments"] == Object((Field("a b", Const(("x",)), True),))
    many = Union((Array(STRING), Map(STRING)))
    variables = (("id", STRING, True), ("path", Array(STRING), False), ("q", many, False), ("r", Const(("y",)), False))
    assert types["NoteVariables"] == Object(tuple(Field(*variable) for variable in variables))
    assert (contract.revision, contract.instructions) == ("2025-11-25", "Ask.")


def test_a_bare_list_is_a_contract_but_one_page_is_not() -> None:
    tools = tool({"type": "object"})["tools"]
    assert contract_of({"tools": tools, "_meta": {}, "ttlMs": 1}).document == {"tools": tools}
    assert contract_of({"tools": tools, "generated": {"by": "us"}}).document == {"tools": tools}
    with pytest.raises(BadInput, match="one page"):
        contract_of({"tools": tools, "nextCursor": "2"})


# --- names ----------------------------------------------------------------------------------------------------

ODD = st.text(max_size=8) | st.sampled_from([*hostile.NAMES, *hostile.PROPERTIES])


@given(st.lists(ODD, max_size=12, unique=True))
def test_field_names_are_unique_and_valid(wires: list[str]) -> None:
    found = naming.fields("X", wires, DiagnosticContext(strict=False))
    assert list(found) == wires
    assert len(set(found.values())) == len(wires)
    assert all(is_name(name) for name in found.values())
    assert not set(found.values()) & set(dir(app.Model))


@given(st.lists(ODD, max_size=12))
def test_stub_and_model_names_are_unique_and_valid(entries: list[str]) -> None:
    for scope, stems in (
        (names.Scope("_"), [stub(name) for name in entries]),
        (names.Scope("_"), [stub(name, "prompt") for name in entries]),
        (names.Scope(), [class_name(name, "Input") for name in entries]),
        (names.Scope(), [names.inner("TInput", name) for name in entries]),
    ):
        found = [scope.claim(stem) for stem in stems]
        assert len(set(found)) == len(found)
        assert all(map(is_name, found))


TAKEN = [
    "Warning",
    "TimeoutError",
    "None",
    "Model",
    "Literal",
    "Integer",
    "Field",
    "Client",
    "Union",
    "Annotated",
    "ConfigDict",
]


def test_shared_definitions_shadow_no_names_that_modules_need() -> None:
    own = {"again": {"$ref": "#/$defs/Part"}, "size": {"type": "integer", "minimum": 1}, "register": {"enum": ["a"]}}
    parts: dict[str, Any] = {name: {"type": "object", "properties": own} for name in TAKEN}
    parts["Part"] = {"type": "object", "properties": {name: {"$ref": f"#/$defs/{name}"} for name in TAKEN}}
    schema = {"type": "object", "properties": {"part": {"$ref": "#/$defs/Part"}}, "$defs": parts}
    module = imported(contract_of({"tools": [tool(schema, name)["tools"][0] for name in ("one", "two")]}))
    sent = {"part": {name: {"again": {}, "size": 1, "register": "a"} for name in TAKEN}}
    assert module.OneInput.model_validate_json(json.dumps(sent)).model_dump(mode="json") == sent


def test_documented_constants_become_literals_with_descriptions() -> None:
    choice = {"oneOf": [{"const": "a", "description": 'Ends """ here\\'}, {"const": "b", "title": "B."}]}
    module = imported(contract_of(tool({"type": "object", "properties": {"choice": choice}})))
    (model,) = (getattr(module, name) for name in module.__all__)
    assert model.model_fields["choice"].annotation == Literal["a", "b"] | None
    words = contract_of(tool({"type": "object", "properties": {"choice": choice}})).types.definitions[model.__name__]
    assert isinstance(words.type, Object)
    assert words.type.fields[0].doc.split("\n")[2:] == ['- `a`: Ends """ here\\', "- `b`: B."]


def test_an_enum_of_integers_beyond_a_double_is_an_integer() -> None:
    module = imported(contract_of(tool({"type": "object", "properties": {"size": {"enum": [10**400, 1.0]}}})))
    (model,) = (getattr(module, name) for name in module.__all__)
    assert model.model_validate_json(json.dumps({"size": 10**400})).size == 10**400


def test_colliding_members_get_distinct_constructor_arguments() -> None:
    members = {name: {"type": "integer"} for name in ("fooBar", "foo_bar", "copy")}
    module = imported(contract_of(tool({"type": "object", "properties": members})))
    (model,) = (getattr(module, name) for name in module.__all__)
    sent = {"fooBar": 1, "foo_bar": 2, "copy": 3}
    assert model(foo_bar=2, foo_bar_2=1, copy_=3).model_dump() == model.model_validate(sent).model_dump() == sent


def is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")


def test_stubs_shadow_no_inherited_names() -> None:
    for base in (app.Contract, app.ContractClient):
        declared = {*dir(base), *inspect.get_annotations(base)}
        assert {name for name in declared if not name.startswith("_")} <= RESERVED
    assert [stub(name) for name in ("served", "client", "models")] == ["served_", "client_", "models_"]


def test_collisions_are_numbered_in_the_order_of_the_contract() -> None:
    entries = [tool({"type": "object"}, name)["tools"][0] for name in ("get.sum", "get-sum", "getSum", "class", "天気")]
    contract = contract_of({"tools": entries})
    stubs = map(lower_contract(contract).stub, contract.tools)
    assert list(stubs) == ["get_sum", "get_sum_2", "get_sum_3", "class_", "天気"]
    inputs = [entry.arguments for entry in contract.tools][:4]
    assert inputs == ["GetSumInput", "GetSumInput2", "GetSumInput3", "ClassInput"]


# --- hostile documents ----------------------------------------------------------------------------------------


def shape(code: str) -> list[str]:
    """Return the syntax of a module without its texts."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree).split(",")


@pytest.mark.full
def test_contract_texts_cannot_inject_code(tmp_path: Path) -> None:
    marker = tmp_path / "made"

    def module(text: str) -> str:
        words = {"title": text, "description": text}
        member = {"type": "string", "enum": [f"{text}!", "other"], "default": f"{text}!", **words}
        schema = {**words, "type": "object", "properties": {f"{text}!": member, "plain": member}, "required": ["plain"]}
        tree = {"anyOf": [{"const": text}, {"type": "array", "items": {"$ref": "#/properties/tree"}}]}
        root = {**schema, "properties": {"p": schema, "tree": tree}}
        contract = contract_of(tool(root, outputSchema=schema, **words))
        imported(contract)
        return types.emit(lower_contract(contract).types, "# for a test", types.CONTRACT)

    plain = [part for part in shape(style(module("plain words"))) if "arg=" not in part and "id=" not in part]
    for text in hostile.payloads(marker):
        found = [part for part in shape(style(module(text))) if "arg=" not in part and "id=" not in part]
        if is_visible(text):  # invisible text gives no description
            assert len(found) == len(plain), text
    assert not marker.exists()


@pytest.mark.full
def test_a_hostile_contract_becomes_models_without_running_code(tmp_path: Path) -> None:
    module = imported(contract_of(hostile.contract(tmp_path / "made")))
    for name in module.__all__:
        TypeAdapter(getattr(module, name)).rebuild()
    assert not (tmp_path / "made").exists()


@pytest.mark.full
def test_models_of_500_tools_are_generated_within_seconds() -> None:
    start = time.process_time()
    contract = contract_of(hostile.many(500))
    read = time.process_time()
    types.emit(lower_contract(contract).types, "# for a test", types.CONTRACT)
    assert read - start < 10
    assert time.process_time() - read < 30


def test_unusable_contracts_are_refused_with_a_pointer_and_a_fix() -> None:
    for document, pointer, reason in [
        (taking({"$ref": "#/$defs/A"}, **{"$defs": {"A": {"$ref": "#/$defs/A"}}}), "/$defs/A", "circle"),
        (taking({"$ref": "#/$defs/A"}, **{"$defs": {"A": {"not": {"$ref": "#/$defs/A"}}}}), "/$defs/A/not", "circle"),
        (taking({"not": {"$ref": "https://example.com/x"}}), "/properties/a/not", "nothing is fetched"),
        (taking({"$ref": "#/$defs/Gone"}), "/properties/a", "leads nowhere"),
        (taking({"$ref": "#gone"}), "/properties/a", "leads nowhere"),
        (taking({"enum": ["\ud800"]}), "/properties/a/enum/0", "half of a character"),
        (taking({"default": float("nan")}), "/properties/a/default", "number"),
        ({"tools": [], "revision": "2025-11-26"}, "#/revision", "2025-11-25"),
        ({"prompts": [{"name": "p", "arguments": [{"name": "a"}, {"name": "a"}]}]}, "/arguments/1/name", "twice"),
        ({"prompts": [{"name": "p", "arguments": [{"name": "a", "enum": [1]}]}]}, "/arguments/0/enum", "texts"),
        ({"resourceTemplates": [{"name": "t", "uriTemplate": "x:{a}", "variables": [{"name": "b"}]}]}, "/name", "'b'"),
    ]:
        with pytest.raises(BadInput) as caught:
            contract_of(document, Path("contract.json"))
        assert str(caught.value).startswith("contract.json#")
        assert pointer in str(caught.value)
        assert reason in str(caught.value)
        assert caught.value.fix


@pytest.mark.full
def test_schemas_that_are_nested_too_deeply_are_refused() -> None:
    rows: list[Any] = [
        lambda inner: {"type": "array", "items": inner},
        lambda inner: {"type": "object", "additionalProperties": inner},
        lambda inner: {"type": "object", "properties": {"p": inner}},
        lambda inner: {"anyOf": [{"type": "null"}, inner]},
        lambda inner: {"allOf": [inner, {"description": "x"}]},
    ]
    for around in rows:
        schemas: list[Any] = [TEXT]
        for _ in range(100):
            schemas.append(around(schemas[-1]))
        deepest = next(depth for depth in range(20, 101) if refused(schemas[depth])) - 1
        imported(contract_of(taking(schemas[deepest])))


def refused(schema: Any) -> bool:
    """Return True if a schema is refused as nested too deeply."""
    try:
        contract_of(taking(schema))
    except BadInput as error:
        if "too deeply" not in str(error):
            raise
        return True
    return False


def test_a_long_chain_of_references_is_followed() -> None:
    chain = {f"A{index}": {"$ref": f"#/$defs/A{index + 1}"} for index in range(1200)}
    assert lowered({"$ref": "#/$defs/A0"}, **{"$defs": {**chain, "A1200": TEXT}}) == Ref("TInputA0")


# --- text -----------------------------------------------------------------------------------------------------

YAML = """
tools:
  - name: t
    description: 2025-11-25
    annotations: {title: yes}
    inputSchema: &schema
      type: object
      properties: {when: {type: string, default: 2001-01-01}}
    outputSchema: *schema
"""


BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20))


def test_yaml_is_read_as_json(tmp_path: Path) -> None:
    path = tmp_path / "contract.yaml"
    path.write_text(YAML, "utf-8")
    contract = read_contract(path)
    assert contract.tools[0].raw["description"] == "2025-11-25"
    assert argument(contract, "when").default == "2001-01-01"


MERGES = "a0: &a0 {x: 1}\n" + "\n".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 20))


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("c.yaml", "tools: []\ntools: []", "twice"),
        ("c.yaml", "tools: [", "line 1"),
        ("c.yaml", "tools: !!python/object:os.system []", "constructor"),
        ("c.yaml", "instructions: !!set {a, b}", "set"),
        ("c.yaml", "1: 2", "no text as its name"),
        ("c.yaml", "a: &a [*a]", "contains itself at line 1 column 4"),
        ("c.yaml", "a: &a {x: 1, <<: *a}", "contains itself at line 1 column 4"),
        ("c.yaml", "[" * 3000, "deeply to be a contract at line 1 column 65"),
        ("c.yaml", "".join(" " * depth + "a:\n" for depth in range(70)), "at line 65 column 65"),
        ("c.yaml", BOMB, "more than 100000 values by aliases and merge keys at line"),
        ("c.yaml", MERGES, "more than 100000 values by aliases and merge keys at line 16 "),
        ("c.yaml", "instructions: 0x" + "f" * 100_000, "digits at line 1 column 15"),
        ("c.yaml", "%YAML 1.1\n---\na: " + ":".join(["59"] * 30_000), "digits at line 3 column 4"),
        ("c.yaml", "instructions: !!int ''", "not YAML"),
        ("c.json", '{"tools": [], "tools": []}', "is repeated"),
        ("c.json", '{"tools": [', "line 1"),
        ("c.json", "[" * 100_000, "deeply"),
        ("c.json", '{"instructions": NaN}', "number"),
        ("c.json", "9" * 5000, "digits"),
    ],
)
def test_damaged_files_are_refused(name: str, text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    with pytest.raises(BadInput) as caught:
        read_contract(path)
    assert str(path) in str(caught.value)
    assert reason in str(caught.value)


def test_aliases_and_merge_keys_are_read(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    schema = "    type: object\n    properties: {x: &text {type: string}, y: {<<: *text, maxLength: 3}}"
    path.write_text(f"tools:\n- name: a\n  inputSchema: &schema\n{schema}\n- {{name: b, inputSchema: *schema}}\n")
    first, second = read_contract(path).tools
    assert first.raw["inputSchema"] == second.raw["inputSchema"]
    assert first.raw["inputSchema"]["properties"]["y"] == {"type": "string", "maxLength": 3}


@pytest.mark.full
@settings(max_examples=examples(20, 40), deadline=None, suppress_health_check=UNCHECKED)
@given(description=ODD, schema=inputs(), name=st.sampled_from(["c.yaml", "c.json"]))
def test_a_written_contract_reads_back_unchanged(description: str, schema: Any, name: str, tmp_path: Path) -> None:
    document = tool(schema, description=description)
    contract = usable(document)
    path = tmp_path / name
    write(contract.document, path)
    assert json.dumps(read_contract(path).document) == json.dumps(document)
