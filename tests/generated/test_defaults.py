"""A `default` in JSON Schema is an annotation: a member without a value is not sent, with or without a default."""

from __future__ import annotations

import copy
import importlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_bindgen.contract.code.package import contract_files
from mcp_bindgen.contract.code.typed_client import client_files
from mcp_bindgen.contract.document import contract_of
from mcp_bindgen.emit.python import types
from mcp_bindgen.emit.python.lowered import PythonProtocol
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.ir import build
from mcp_bindgen.ir.model import Object
from mcp_bindgen.runtime.session.endpoint import serve
from mcp_bindgen.runtime.transports.memory import MemoryTransport, pair
from mcp_bindgen.spec import Store
from mcp_bindgen.spec.store import external
from tests.contract.code.test_contract_package import NEWEST, REVISIONS, protocols, write
from tests.harness.checked_connections import bindings
from tests.harness.commands import save
from tests.harness.small_schemas import record

LEAVES: dict[str, tuple[dict[str, Any], Any]] = {
    "archived": ({"type": "boolean", "default": False}, True),
    "checked": ({"type": "boolean", "default": True}, False),
    "count": ({"type": "integer", "default": 3}, 4),
    "zero": ({"type": "integer", "default": 0}, 1),
    "ratio": ({"type": "number", "default": 0.5}, 2.5),
    "text": ({"type": "string", "default": "a"}, "b"),
    "empty": ({"type": "string", "default": ""}, "c"),
    "colour": ({"enum": ["red", "blue"], "default": "red"}, "blue"),
    "fixed": ({"const": "only", "default": "only"}, "only"),
    "nothing": ({"type": "null", "default": None}, None),
    "maybe": ({"type": ["integer", "null"], "default": 5}, None),
    "perhaps": ({"type": ["string", "null"], "default": None}, "d"),
    "items": ({"type": "array", "items": {"type": "integer"}, "default": [1]}, [2, 3]),
    "plain": ({"type": "object", "additionalProperties": {"type": "integer"}, "default": {"x": 1}}, {"y": 2}),
    "free": ({"default": {"any": [None]}}, {"other": 1}),
    "referred": ({"$ref": "#/$defs/Size", "default": "L"}, "S"),
}
"""Name -> a schema with a default, and a value that users may pass."""

PROPERTIES = {name: schema for name, (schema, _) in LEAVES.items()}
INNER = {**record("type", type={"const": "block"}, **PROPERTIES), "default": {"type": "block", "count": 7}}
NEST = {"inner": INNER, "several": {"type": "array", "items": INNER, "default": []}}
SCHEMA = {**record(**PROPERTIES, **NEST), "$defs": {"Size": {"enum": ["S", "L"]}}}
DOCUMENT: dict[str, Any] = {"tools": [{"name": "edit", "inputSchema": SCHEMA, "outputSchema": SCHEMA}]}
DEFAULTS = {name: schema["default"] for name, schema in PROPERTIES.items()}
SCALARS = {name: value for name, value in DEFAULTS.items() if isinstance(value, bool | int | float | str)}

SERVER = """
from .contract import DefaultsContract, models

SEEN = []


class Defaults(DefaultsContract):
    async def edit(self, arguments, ctx):
        SEEN.append(arguments)
        given = arguments.model_dump(by_alias=False)
        inner = arguments.inner and models.EditOutputInner(**{k: v for k, v in given["inner"].items() if k != "type"})
        several = [
            models.EditOutputSeveral(**{k: v for k, v in each.items() if k != "type"})
            for each in given.get("several", [])
        ]
        plain = {name: value for name, value in given.items() if name not in ("inner", "several")}
        more = {name: value for name, value in [("inner", inner), ("several", several)] if name in given}
        return models.EditOutput(**plain, **more)
"""

CHOICES = {name: st.sampled_from([value, schema["default"]]) for name, (schema, value) in LEAVES.items()}
BLOCK = st.fixed_dictionaries({"type": st.just("block")}, optional=CHOICES)
NESTED = {"inner": BLOCK, "several": st.lists(BLOCK, max_size=2)}
ARGUMENTS = st.fixed_dictionaries({}, optional={**CHOICES, **NESTED})


class Recorded(MemoryTransport):
    """One end of a connection that records the messages it sends."""

    def __init__(self, end: MemoryTransport) -> None:
        self.__dict__ = end.__dict__
        self.sent: list[bytes] = []

    async def send(self, messages: Sequence[bytes]) -> None:
        """Record messages and send them."""
        self.sent += messages
        await super().send(messages)


@pytest.fixture(scope="module", autouse=True)
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Generate a server and a client of the contract as the package `defaults_of`."""
    folder = tmp_path_factory.mktemp("made")
    contract, place = contract_of(DOCUMENT), folder / "defaults_of"
    (newest,) = protocols(NEWEST)
    write(place / "contract", contract_files(contract, protocols(*REVISIONS), "defaults", "a test"))
    write(place, client_files(contract, newest, "DefaultsClient", "client.py", "a test"))
    write(place, {"__init__.py": "", "server.py": SERVER})
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))


def text(value: Any) -> str:
    """Return JSON in one form, in which 1 and `true` differ."""
    return json.dumps(value, sort_keys=True)


def models_of(module: Any, whole: Mapping[str, Any], stem: str) -> dict[str, Any]:
    """Return arguments as Python values, in which objects are instances of the models."""

    def block(name: str, value: Mapping[str, Any]) -> Any:
        return getattr(module, stem + name)(**{key: item for key, item in value.items() if key != "type"})

    found = dict(whole)
    if "inner" in whole:
        found["inner"] = block("Inner", whole["inner"])
    if "several" in whole:
        found["several"] = [block("Several", each) for each in whole["several"]]
    return found


# --- contracts ------------------------------------------------------------------------------------------------


@pytest.mark.full
@given(arguments=ARGUMENTS)
@settings(max_examples=60, deadline=None)
def test_the_wire_has_exactly_the_given_values(arguments: dict[str, Any]) -> None:
    client, server = (importlib.import_module(f"defaults_of.{name}") for name in ("client", "server"))

    async def talk() -> tuple[Any, list[bytes], list[bytes]]:
        ours, theirs = map(Recorded, pair())
        result: Any = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: serve(theirs, server.Defaults()))
            async with client.DefaultsClient.connect(ours) as edits:
                result = await edits.edit(**models_of(client, arguments, "EditInput"))
            await theirs.close()
        return result, ours.sent, theirs.sent

    result, sent, answered = anyio.run(talk)
    (asked,) = (message for raw in sent if (message := json.loads(raw)).get("method") == "tools/call")
    (answer,) = (message["result"] for raw in answered if "structuredContent" in (message := json.loads(raw))["result"])
    assert text(asked["params"].get("arguments", {})) == text(arguments)
    assert text(answer["structuredContent"]) == text(arguments)
    assert text(result.model_dump()) == text(arguments)
    if not arguments:
        assert any(b'"arguments":{}' in raw for raw in sent)
    seen = server.SEEN[-1]
    for reader in (seen, result, *(block for block in (seen.inner, result.inner) if block)):
        for name in SCALARS.keys() - reader.model_fields_set:
            assert text(getattr(reader, name)) == text(SCALARS[name]), name


@pytest.mark.full
@given(arguments=ARGUMENTS)
@settings(max_examples=100, deadline=None)
def test_a_constructed_model_equals_the_model_read_from_json(arguments: dict[str, Any]) -> None:
    models = importlib.import_module("defaults_of.contract.models")
    here = models.EditInput(**models_of(models, arguments, "EditInput"))
    there = models.EditInput.model_validate_json(json.dumps(arguments))
    assert text(json.loads(here.model_dump_json())) == text(json.loads(there.model_dump_json())) == text(arguments)
    assert here == there


def test_docstrings_state_the_defaults() -> None:
    doc = importlib.import_module("defaults_of.client").DefaultsClient.edit.__doc__
    for name, schema in PROPERTIES.items():
        assert f"{name}: (default of the server: {json.dumps(schema['default'])})" in " ".join(doc.split())


def test_a_required_constant_must_be_present_in_json() -> None:
    models = importlib.import_module("defaults_of.contract.models")
    assert models.EditInputInner().model_dump() == {"type": "block"}
    with pytest.raises(ValueError, match="type"):
        models.EditInputInner.model_validate_json("{}")


# --- revisions ------------------------------------------------------------------------------------------------


def fields(protocol: PythonProtocol) -> Iterator[tuple[str, set[str]]]:
    """Yield the name and the required fields of each object."""
    for name, definition in protocol.definitions.items():
        if isinstance(definition.type, Object):
            yield name, {protocol.attributes[name][field.wire] for field in definition.type.fields if field.required}


@pytest.mark.full
def test_constructors_of_a_revision_fill_in_only_required_fields() -> None:
    for revision in REVISIONS:
        module = bindings(revision).types
        for name, required in fields(lower(build(Store().effective(revision)))):
            model = getattr(module, name)
            model.model_rebuild(force=True)
            assert model.__constructor_defaults__.keys() <= required, name
            optional = model.model_fields.keys() - required
            assert {field: model.model_fields[field].default for field in optional} == dict.fromkeys(optional), name


@pytest.mark.full
@pytest.mark.parametrize("revision", [REVISIONS[0], REVISIONS[-1]])
def test_a_default_in_the_schema_of_a_revision_does_not_change_the_types(tmp_path: Path, revision: str) -> None:
    plain = json.loads((Store().root / revision / "schema.json").read_text("utf-8"))
    defaulted = copy.deepcopy(plain)
    values = {"boolean": True, "string": "x", "integer": 1, "number": 1, "array": [], "object": {}}
    for definition in defaulted["$defs"].values():
        for node in definition.get("properties", {}).values():
            if isinstance(node.get("type"), str) and "const" not in node:
                node["default"] = values[node["type"]]
    files = (save(tmp_path / "plain.json", plain), save(tmp_path / "defaulted.json", defaulted))
    texts = [types.emit(build(external(file, revision, Store().semantics)), "# x") for file in files]
    assert texts[0] == texts[1]
