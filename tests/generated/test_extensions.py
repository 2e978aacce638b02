"""Packages of extensions: they add to the core without repeating it, can be combined, and import no other package."""

from __future__ import annotations

import json
from importlib import import_module
from inspect import getmembers, isclass
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

from mcp_bindgen import v2026_07_28 as core
from mcp_bindgen.ir import build
from mcp_bindgen.runtime.abi import ExtensionResult
from mcp_bindgen.runtime.model.base import Model
from mcp_bindgen.spec import Store, extend
from mcp_bindgen.v2026_07_28.extensions import apps, tasks
from tests.harness.commands import ROOT, python

FOLDER = ROOT / "generated" / "mcp_bindgen" / "v2026_07_28" / "extensions"
PACKAGE = "mcp_bindgen.v2026_07_28.extensions"
NAMES = sorted(module.name for module in iter_modules([str(FOLDER)]))

every_extension = pytest.mark.parametrize("name", NAMES)


def package(name: str) -> Any:
    return import_module(f"{PACKAGE}.{name}")


def loaded(code: str) -> set[str]:
    """Return our modules that are imported after `code`, in a process of its own."""
    told = "import json, sys; print(json.dumps([name for name in sys.modules if name.startswith('mcp_bindgen.')]))"
    return set(json.loads(python(f"{code}\n{told}", Path())))


def test_every_pinned_extension_has_a_package() -> None:
    store = Store()
    assert sorted(one.module for one in store.extensions_of(store.effective("2026-07-28"))) == NAMES


@every_extension
def test_an_extension_package_repeats_no_core_type(name: str) -> None:
    types = package(name).types
    assert {one for one in types.__all__ if one not in core.types.__all__} == set(types.__all__)
    classes = [one for _, one in getmembers(types, isclass) if issubclass(one, Model)]
    assert {one.__module__ for one in classes} <= {
        types.__name__,
        f"{types.__package__}.envelopes",
        core.types.__name__,
        "mcp_bindgen.runtime.model.base",
    } | {ExtensionResult.__module__}


@pytest.mark.full
@every_extension
def test_an_extension_does_not_change_the_core_definitions(name: str) -> None:
    store = Store()
    revision = store.effective("2026-07-28")
    alone, extended = build(revision), build(extend(revision, store.extension_schema(name, revision)))
    assert {name: one for name, one in extended.definitions.items() if not one.origin} == alone.definitions
    assert [method for method in extended.methods if not method.origin] == list(alone.methods)


@pytest.mark.full
@every_extension
def test_an_import_loads_no_other_extension(name: str) -> None:
    here = f"{PACKAGE}.{name}"
    facts = loaded(f"from {here} import EXTENSION")
    assert {module for module in facts if module.startswith("mcp_bindgen.v")} == {
        "mcp_bindgen.v2026_07_28",
        "mcp_bindgen.v2026_07_28.revision",
        "mcp_bindgen.v2026_07_28.errors",
        PACKAGE,
        here,
        f"{here}.extension",
    }
    whole = loaded(f"from {here} import Client, Server")
    assert not [
        one for one in whole if one.startswith(tuple(f"{PACKAGE}.{other}." for other in NAMES if other != name))
    ]


@pytest.mark.full
def test_types_without_core_references_do_not_import_the_core_types() -> None:
    assert "mcp_bindgen.v2026_07_28.types" not in loaded(f"import {PACKAGE}.apps.types")


@pytest.mark.full
def test_the_core_imports_no_extension() -> None:
    whole = loaded("from mcp_bindgen.v2026_07_28 import Client, Server, types, methods, dispatcher")
    assert not [module for module in whole if module.startswith(PACKAGE)]


def test_only_methods_that_may_require_input_accept_extension_results() -> None:
    source = (ROOT / "generated" / "mcp_bindgen" / "v2026_07_28" / "server.py").read_text("utf-8")
    assert source.count("| ExtensionResult]") == 3
    assert source.count("InputRequiredResult | ExtensionResult]") == 3
    for revision in ("v2024_11_05", "v2025_03_26", "v2025_06_18", "v2025_11_25"):
        text = (ROOT / "generated" / "mcp_bindgen" / revision / "server.py").read_text("utf-8")
        assert "ExtensionResult" not in text


def test_an_extension_result_is_an_alternative_only_in_the_extension_methods() -> None:
    assert issubclass(tasks.types.CreateTaskResult, ExtensionResult)
    assert tasks.types.CreateTaskResult in tasks.methods.CALL_TOOL.alternatives
    assert tasks.types.CreateTaskResult not in core.methods.CALL_TOOL.alternatives


def test_one_class_can_combine_several_extensions() -> None:
    class Weather(tasks.Server, apps.Server):
        info = core.types.Implementation(name="weather", version="1")

    class Mine(apps.Client, tasks.Client):
        info = core.types.Implementation(name="mine", version="1")

    assert {one.id for one in Weather.extensions} == {tasks.EXTENSION.id, apps.EXTENSION.id}
    assert {one.id for one in Mine.extensions} == {tasks.EXTENSION.id, apps.EXTENSION.id}
    assert issubclass(Weather.context, tasks.Context)


def test_a_key_of_meta_with_several_types_has_a_constant_for_each() -> None:
    tool = core.types.Tool(name="board", input_schema=core.types.ToolInputSchema())
    told = apps.meta.TOOL_UI.put(tool, apps.types.McpUiToolMeta(resource_uri="ui://dice/board"))
    assert told.model_dump()["_meta"] == {"ui": {"resourceUri": "ui://dice/board"}}
    assert apps.meta.TOOL_UI.read(told) == apps.types.McpUiToolMeta(resource_uri="ui://dice/board")
    assert apps.meta.RESOURCE_UI.key == apps.meta.TOOL_UI.key
