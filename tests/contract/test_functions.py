"""Contracts of annotated functions: their content, and errors that name the place and the fix."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from mcp_bindgen.contract.document import contract_of, read_contract, write
from mcp_bindgen.contract.functions import document_of_module, tool_of
from mcp_bindgen.spec import BadInput
from tests.harness.commands import complaint, inside

WEATHER = '''
"""The weather, as a team would write it down first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Literal
from pydantic import BaseModel, Field

print("imported")

class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"

class Place(BaseModel):
    """Somewhere."""
    city: str
    near: list[Place] = []

@dataclass
class Sky:
    clouds: float
    rain: bool = False

class Context:
    """Stands for that of a server."""

async def get_forecast(
    city: str, days: Annotated[int, Field(ge=1, le=7)] = 3, *, unit: Unit = Unit.CELSIUS, since: date | None = None,
    ctx: Context,
) -> Sky:
    """Tell the sky over a city.

    It is always right.

    Args:
        city: Where,
            by its usual name.
        days: How many days.

    Returns:
        The sky, day by day.
    """

def count(places: list[Place], kind: Literal["all", "near"] = "all") -> int:
    """Count places.

    Returns:
        How many there are.
    """

def find(name: str) -> Place: ...

def say(class_: str, self: str = "me") -> str:
    """Say something.

    Returns:
        What was said.
    """

def nothing() -> None: ...
def _helper(): ...
'''


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder; modules imported from it are removed from `sys.modules` afterwards."""
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def tools(folder: Path, code: str, name: str = "some_tools") -> dict[str, dict[str, Any]]:
    """Return the tools of a module with this code, by name."""
    (folder / f"{name}.py").write_text(code, "utf-8")
    return {tool["name"]: tool for tool in document_of_module(name, folder)["tools"]}


def refused(folder: Path, code: str, name: str = "bad_tools") -> str:
    """Return the single-line error for a module that is refused, without the folder."""
    with pytest.raises(BadInput) as caught:
        tools(folder, code, name)
    return str(caught.value).replace(f"{folder}/", "")


# --- content of contracts -------------------------------------------------------------------------------------


def test_a_tool_gets_its_schema_from_the_signature_and_docstring(folder: Path) -> None:
    found = tools(folder, WEATHER)
    assert list(found) == ["get_forecast", "count", "find", "say", "nothing"]
    assert found["get_forecast"] == {
        "name": "get_forecast",
        "description": "Tell the sky over a city.\n\nIt is always right.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "city": {"description": "Where, by its usual name.", "type": "string"},
                "days": {"default": 3, "description": "How many days.", "maximum": 7, "minimum": 1, "type": "integer"},
                "unit": {"$ref": "#/$defs/Unit", "default": "c"},
                "since": {"anyOf": [{"format": "date", "type": "string"}, {"type": "null"}], "default": None},
            },
            "required": ["city"],
            "additionalProperties": False,
            "$defs": {"Unit": {"enum": ["c", "f"], "type": "string"}},
        },
        "outputSchema": {
            "type": "object",
            "properties": {"clouds": {"type": "number"}, "rain": {"default": False, "type": "boolean"}},
            "required": ["clouds"],
            "title": "Sky",
            "description": "The sky, day by day.",
        },
    }


def test_the_output_schema_follows_the_return_annotation(folder: Path) -> None:
    found = tools(folder, WEATHER)
    assert found["count"]["outputSchema"] == {
        "type": "object",
        "properties": {"result": {"type": "integer"}},
        "required": ["result"],
        "description": "How many there are.",
    }
    place = found["find"]["outputSchema"]
    assert place["type"] == "object"
    assert jsonschema_rs.is_valid(place, {"city": "Oslo", "near": [{"city": "Ski"}]})
    assert not jsonschema_rs.is_valid(place, {"city": "Oslo", "near": [{}]})
    assert "outputSchema" not in found["say"]
    assert found["say"]["description"] == "Say something.\n\nReturns: What was said."
    nothing = {"type": "object", "properties": {}, "additionalProperties": False}
    assert found["nothing"] == {"name": "nothing", "inputSchema": nothing}


def test_parameters_may_have_any_name(folder: Path) -> None:
    assert list(tools(folder, WEATHER)["say"]["inputSchema"]["properties"]) == ["class_", "self"]
    code = "def f(_hidden: int, schema: int, model_config: int, copy: int, ctx: str, context: int) -> None: ..."
    names = ["_hidden", "schema", "model_config", "copy", "ctx", "context"]
    assert list(tools(folder, code, "names")["f"]["inputSchema"]["properties"]) == names


def test_a_context_parameter_of_any_revision_is_left_out(folder: Path) -> None:
    code = (
        "from mcp_bindgen import v2025_06_18, v2025_11_25\n"
        "async def f(a: int, ctx: v2025_06_18.Context | v2025_11_25.Context) -> v2025_11_25.types.CallToolResult: ...\n"
        "def g(context: v2025_11_25.Context | None = None) -> list[v2025_11_25.types.TextContent]: ...\n"
    )
    found = tools(folder, code)
    assert found["f"]["inputSchema"]["properties"] == {"a": {"type": "integer"}}
    assert found["g"]["inputSchema"]["properties"] == {}
    assert "outputSchema" not in found["f"]
    assert "outputSchema" not in found["g"]


def test_dunder_all_decides_which_functions_are_public(folder: Path) -> None:
    code = "from os.path import join\n__all__ = ['_b']\ndef a() -> str: ...\ndef _b() -> str: ...\n"
    assert list(tools(folder, code)) == ["_b"]
    code = "from textwrap import dedent\nA = 1\nclass B: ...\nf = lambda: 1\ndef a() -> str: ...\n"
    assert list(tools(folder, code, "imports")) == ["a"]


def test_a_description_in_the_annotation_overrides_the_docstring(folder: Path) -> None:
    code = (
        "from typing import Annotated\nfrom pydantic import Field\n"
        "def f(a: Annotated[int, Field(description='Own.')], b: int) -> None:\n"
        "    '''Do.\n\n    Args:\n        a: Theirs.\n        b: Said.\n    '''\n"
    )
    properties = tools(folder, code)["f"]["inputSchema"]["properties"]
    assert [properties[name]["description"] for name in ("a", "b")] == ["Own.", "Said."]


@pytest.mark.parametrize(
    "arguments",
    ["Args:\n        a: The a.", ":param a: The a.", "Parameters\n    ----------\n    a : int\n        The a."],
)
def test_argument_descriptions_are_read_from_all_docstring_styles(folder: Path, arguments: str) -> None:
    found = tools(folder, f"def f(a: int) -> None:\n    '''Do.\n\n    {arguments}\n    '''\n")["f"]
    assert found["description"] == "Do."
    assert found["inputSchema"]["properties"]["a"]["description"] == "The a."


@pytest.mark.parametrize("default", ["object()", "b'\\xff'"])
def test_a_parameter_with_a_default_that_json_cannot_express_is_optional(folder: Path, default: str) -> None:
    found = tools(folder, f"from typing import Any\ndef f(a: Any = {default}) -> None: ...\n")["f"]["inputSchema"]
    assert found == {"type": "object", "properties": {"a": {}}, "additionalProperties": False}


def test_a_single_function_becomes_a_tool() -> None:
    def double(number: int) -> int:
        return 2 * number

    assert tool_of(double)["name"] == "double"
    assert tool_of(double, "times-two")["name"] == "times-two"


# --- round trip -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_a_written_contract_can_be_read_again(folder: Path, suffix: str) -> None:
    (folder / "some_tools.py").write_text(WEATHER, "utf-8")
    document = document_of_module("some_tools", folder)
    write(document, folder / f"contract{suffix}")
    contract = read_contract(folder / f"contract{suffix}")
    assert [tool.name for tool in contract.tools] == ["get_forecast", "count", "find", "say", "nothing"]
    assert [dict(tool.raw) for tool in contract.tools] == document["tools"]
    assert contract.types == contract_of(document).types


def test_files_with_the_same_name_are_different_modules(tmp_path: Path) -> None:
    """This also holds for the name of a module that is imported already."""
    found = []
    for number, name in enumerate(["same_tools", "same_tools", "json"]):
        file = tmp_path / str(number) / f"{name}.py"
        file.parent.mkdir()
        file.write_text(f"def f{number}() -> None: ...\n", "utf-8")
        found += [tool["name"] for tool in document_of_module(str(file))["tools"]]
    assert found == ["f0", "f1", "f2"]


def test_output_of_a_module_goes_to_stderr_and_not_into_the_contract(folder: Path) -> None:
    (folder / "loud_tools.py").write_text(WEATHER, "utf-8")
    done = inside("contract", "from-module", "loud_tools", "--path", folder)
    assert (done.returncode, done.stderr) == (0, "imported\n")
    assert json.loads(done.stdout)["tools"][0]["name"] == "get_forecast"


# --- refused modules ------------------------------------------------------------------------------------------

BAD = [
    ("def f(*args: int) -> None: ...", "bad_tools.py:1: f: *args takes any number of arguments; write args: list[int]"),
    ("\ndef f(**more: int) -> None: ...", "bad_tools.py:2: f: **more takes arguments of any name; name them"),
    ("def f(a: int, /) -> None: ...", "bad_tools.py:1: f: a is positional-only, but clients pass names; remove the /"),
    ("def f(a) -> None: ...", "bad_tools.py:1: f: the parameter a has no type; annotate it, as in a: str"),
    ("def f(ctx) -> None: ...", "bad_tools.py:1: f: the parameter ctx has no type"),
    ("def f(a: int): ...", "bad_tools.py:1: f: no return annotation, from which the schema follows; write -> str"),
    ("def f(a: int = None) -> None: ...", "f: the default of a, None, is not of its type; write a: ... | None = None"),
    ("def f(a: int = 'x') -> None: ...", "f: the default of a, 'x', is not of its type; correct the default"),
    ("def f() -> list[int]:\n    yield 1", "bad_tools.py:1: f: yields values one by one; return a list"),
    ("def f(a: 'Nowhere') -> None: ...", "f: the annotations cannot be read: name 'Nowhere' is not"),
    ("import io\ndef f(a: io.BytesIO) -> None: ...", "f: JSON cannot express the type of the parameter a"),
    ("import io\ndef f() -> io.BytesIO: ...", "bad_tools.py:2: f: JSON cannot express the type of the return value"),
    ("A = 1", "bad_tools.py: the module 'bad_tools' has no public function; write one, or list it in __all__"),
    ("import nowhere_at_all", "bad_tools.py:1: importing bad_tools failed: ModuleNotFoundError: No module named"),
    ("x = 1\ny = x / 0", "bad_tools.py:2: importing bad_tools failed: ZeroDivisionError: division by zero"),
    ("raise SystemExit(3)", "bad_tools.py:1: importing bad_tools failed: SystemExit: 3"),
    ("def f(:", "bad_tools.py:1: bad_tools is no Python: invalid syntax"),
]


@pytest.mark.parametrize(("code", "message"), BAD, ids=[message for _, message in BAD])
def test_a_module_that_no_contract_can_describe_is_refused(folder: Path, code: str, message: str) -> None:
    line = refused(folder, code)
    assert message in line
    assert "\n" not in line


def test_a_missing_module_is_reported(folder: Path) -> None:
    said = complaint("contract", "from-module", "no_such_module", "--path", folder)
    assert said == f"error: there is no module 'no_such_module' in {folder}; see --path"
    assert "is no folder" in complaint("contract", "from-module", "x", "--path", folder / "nowhere")
