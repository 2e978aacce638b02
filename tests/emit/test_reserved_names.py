"""Names of schemas that Python, pydantic, our classes or generated modules need: bindings import and stay complete."""

from __future__ import annotations

import builtins
import json
import keyword
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import TypeAdapter

import mcp_bindgen.emit as emitters
from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.bindings import emit
from mcp_bindgen.emit.python.environment import TEMPLATES
from mcp_bindgen.ir import build
from mcp_bindgen.ir.naming import pascal
from mcp_bindgen.runtime import Client, Context, Server, abi
from mcp_bindgen.runtime.model.base import Model
from mcp_bindgen.spec import Store, external
from tests.harness.commands import save
from tests.harness.effort import cases
from tests.harness.small_schemas import Schema, message, record, ref, small, union

TEXT: Schema = {"type": "string"}
WORDS = {*keyword.kwlist, *keyword.softkwlist, "typing", "types", "methods", "core", "abi", "overload"}
BUILTINS = {"list", "dict", "str", "int", "float", "bool", "type", "object", "property", "classmethod"}
MEMBERS = sorted({*dir(Model), *dir(type(Model)), *vars(Model), *dir(object), *WORDS, *BUILTINS})
CLASSES = sorted(
    {*WORDS, *BUILTINS, *(name for name in dir(builtins) if name[0].isupper() and not name.endswith("Warning"))}
    | {*naming.IMPORTED, "Literal", "Optional", "Union", "Annotated", "Any", "BaseModel", "ConfigDict"}
    | {"_Field", "_Field_", "__annotations__", "__name__", "__debug__", "__getattr__"}
)
SIDES = (Client, Server, Context)
STUBS = sorted({*WORDS, *BUILTINS, *(name for side in SIDES for name in dir(side))})


def bindings(folder: Path, name: str, schema: Schema) -> ModuleType:
    """Return the module of types in the bindings of `schema`, in a package `name`."""
    source = external(save(folder / "draft.json", schema), "draft", Store().semantics)
    files = emit(emitters.Model(build(source)), emitters.Options(name, "mcp-bindgen generate"))
    (folder / name).mkdir()
    for file, text in files.items():
        (folder / name / file).write_text(text, "utf-8")
    return import_module(f"{name}.types")


@pytest.mark.full
def test_fields_of_any_name_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    forms = {
        "Plain": MEMBERS,
        "Behind": [f"{name.strip('_')}_" for name in MEMBERS],
        "Before": [f"_{name.strip('_')}" for name in MEMBERS],
        "Special": [f"__{name.strip('_')}__" for name in MEMBERS],
        "Camel": [name.title().replace("_", "") for name in MEMBERS],
        "Together": ["register", "register_", "_register", "__register__", "Register", "a/register", "register_2"],
    }
    shapes = {name: record(**{wire: {"type": "integer"} for wire in wires}) for name, wires in forms.items()}
    types = bindings(tmp_path, "members", small(shapes))
    for name, wires in forms.items():
        cls: type[Model] = getattr(types, name)
        sent = {wire: number for number, wire in enumerate(dict.fromkeys(wires))}
        read = cls.model_validate_json(json.dumps(sent))
        assert read.model_dump() == json.loads(read.model_dump_json()) == sent
        fields = cls.model_fields
        assert not fields.keys() & {*dir(Model), *dir(type(Model))}
        assert cls(**{field: getattr(read, field) for field in fields}) == read
        assert {info.alias: getattr(read, field) for field, info in fields.items()} == sent
        assert cls.model_validate_json("{}").model_dump() == {}


@pytest.mark.full
def test_definitions_of_any_name_are_importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    kinds = {"kind": {"enum": ["x", None]}, "size": {"type": "number", "minimum": 1}, "list": {"type": "array"}}
    shapes: Schema = {}
    for number, name in enumerate(CLASSES):  # `A1` comes first, so it refers to the definition by a string
        shapes |= {f"A{number}": record(x=ref(name)), name: record(a=ref(f"A{number}"), **kinds)}
    types = bindings(tmp_path, "definitions", small(shapes))
    sent = {"a": {"x": {"kind": "x"}}, "size": 1, "list": [1]}
    for name in filter(naming.is_importable, CLASSES):
        cls: type[Model] = getattr(types, name)
        assert cls.model_validate_json(json.dumps(sent)).model_dump(mode="json") == sent


@pytest.mark.full
@pytest.mark.parametrize("shape", cases(["recursive", "text", "other"], quick=["recursive"]))
def test_aliases_of_any_name_are_importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))

    def alias(name: str) -> Schema:
        listed = {"anyOf": [TEXT, {"type": "array", "items": ref(name)}, {"type": "null"}]}
        return {"recursive": listed, "text": {**TEXT, "minLength": 1}, "other": ref("Part")}[shape]

    users = {f"User{number}": record(x=ref(name)) for number, name in enumerate(CLASSES)}
    aliases = {name: alias(name) for name in CLASSES}
    types = bindings(tmp_path, f"{shape}_aliases", small({**users, **aliases}, Part=record()))
    value: Any = {"recursive": [["a", None]], "text": "a", "other": {}}[shape]
    for name in filter(naming.is_importable, CLASSES):
        adapter = TypeAdapter[Any](getattr(types, name))
        assert adapter.dump_python(adapter.validate_python({} if shape == "other" else value), mode="json") == value


@pytest.mark.full
def test_methods_and_arguments_of_any_name_shadow_no_inherited_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    stems = dict.fromkeys(pascal(name) for name in STUBS if pascal(name).isidentifier())
    requests = {f"{stem}Request": message(f"any/{stem}") for stem in stems}
    requests["ArgumentsRequest"] = message("arguments", ref("AnyParams"))
    params = record(**dict.fromkeys(MEMBERS, TEXT), _meta={"type": "object"}, texts={"type": "array", "items": TEXT})
    both = {f"{side}Request": union(*requests) for side in ("Client", "Server")}
    types = bindings(tmp_path, "stubs", small({**requests, **both}, AnyParams=params, FindBookRequest=None))
    made = import_module("stubs.server"), import_module("stubs.client")
    assert types.AnyParams
    for own, base in ((made[0].Server, abi.Server), (made[0].Context, abi.Context), (made[1].Client, abi.Client)):
        stated = {name for name in vars(own) if not name.startswith("_")}
        annotated = {name for one in base.__mro__ for name in vars(one).get("__annotations__", ())}
        assert stated & {*dir(base), *annotated} <= {"dispatcher", "context", "ask_params", "revision"}
        assert len(stated) > len(stems)
    assert "overload_" in vars(made[0].Context)


def test_the_list_of_imported_names_has_the_names_that_templates_of_types_use() -> None:
    texts = [path.read_text("utf-8") for path in (TEMPLATES / "types").rglob("*.jinja2")]
    used = {name for text in texts for name in re.findall(r"\bown\.(\w+)", text)}
    assert "Field" in used
    assert used <= {*naming.IMPORTED}
