"""The contract of an `App`: exported from its module, and kept in sync."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_bindgen.app import App
from mcp_bindgen.contract.document import contract_of, read_contract
from mcp_bindgen.ir.model import Array, Object, Ref
from tests.harness.commands import complaint, inside

NOTES = '''
from mcp_bindgen.app import App

app = App("notes", version="1")
print("imported")

@app.tool
def add(text: str) -> int:
    """Add a note."""
    return 1
'''


@pytest.fixture
def module(tmp_path: Path) -> Iterator[Path]:
    """Yield a module with an app; it is removed from `sys.modules` afterwards."""
    known = set(sys.modules)
    path = tmp_path / "some_notes.py"
    path.write_text(NOTES, "utf-8")
    yield path
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_an_exported_contract_is_checked_against_the_app(module: Path, suffix: str) -> None:
    out = module.with_name(f"contract.{suffix}")
    assert inside("contract", "export", module, "--out", out).returncode == 0
    contract = read_contract(out)
    assert [tool.name for tool in contract.tools] == ["add"]
    assert contract.document["serverInfo"] == {"name": "notes", "version": "1"}
    done = inside("contract", "export", f"{module}:app", "--out", out, "--check")
    assert (done.returncode, done.stdout) == (0, f"{out} is up to date.\n")

    before = out.read_text("utf-8").replace("Add a note.", "Add notes.")
    out.write_text(before, "utf-8")
    done = inside("contract", "export", module, "--out", out, "--check", code=1)
    assert "tool add has 1 changed text" in done.stdout
    assert done.stdout.endswith(f"{out} is out of date; run the command without --check\n")
    assert out.read_text("utf-8") == before


def test_a_module_is_found_by_its_name(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(module.parent)
    done = inside("contract", "export", "some_notes:app")
    assert (done.returncode, done.stderr.splitlines()[:1]) == (0, ["imported"])
    assert json.loads(done.stdout)["tools"][0]["name"] == "add"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("some_notes.py:other", "there is no App 'other'; say some_notes.py:NAME, with one of app"),
        ("some_note.py", "some_note.py: there is no such file; did you mean some_notes.py?"),
        ("nowhere:app", "there is no module 'nowhere'; run this in its folder, or install it"),
        ("empty.py:app", "there is no App 'app'; write app = App(\"name\")"),
        ("two.py", "there is not one App; say two.py:NAME, with one of a, b"),
    ],
)
def test_a_source_that_names_no_app_is_refused(
    module: Path, monkeypatch: pytest.MonkeyPatch, source: str, said: str
) -> None:
    monkeypatch.chdir(module.parent)
    Path("empty.py").write_text("")
    Path("two.py").write_text("from mcp_bindgen.app import App\na = App('a')\nb = App('b')\n")
    done = inside("contract", "export", source)
    assert (done.returncode, done.stdout, said in done.stderr.splitlines()[-1]) == (2, "", True)


def test_a_check_needs_a_file(module: Path) -> None:
    said = complaint("contract", "export", module, "--check")
    assert said == "error: --check needs a file to compare with; give --out FILE"


def test_misspelled_contract_members_are_refused_with_a_suggestion(tmp_path: Path) -> None:
    path = tmp_path / "contract.json"
    for name, meant in (("inputschema", "inputSchema"), ("input_schema", "inputSchema"), ("descripton", "description")):
        entry = {"name": "a", "inputSchema": {"type": "object"}}
        entry.pop(meant, None)
        path.write_text(json.dumps({"tools": [{**entry, name: {}}]}))
        said = complaint("contract", "diff", path, path)
        assert said == f"error: {path}#/tools/0/{name}: {name!r} says nothing here; did you mean {meant}?"
    path.write_text(json.dumps({"tools": [{"name": "a", "inputSchema": {"type": "object"}, "vendor": 1}]}))
    assert inside("contract", "diff", path, path).returncode == 0


def test_a_server_of_a_configuration_file_must_be_named(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {"notes": {"command": "x"}}}')
    for words in (("call", config, "--list"), ("contract", "export", config)):
        assert complaint(*words) == f"error: {config} is a file of servers: say {config}#notes"


def test_a_type_shared_by_several_tools_becomes_one_definition(tmp_path: Path) -> None:
    app = App("notes")

    class Note(BaseModel):
        """A note."""

        text: str
        next: Note | None = None

    class Other(BaseModel):
        text: int

    def add(note: Note) -> Note:
        return note

    def find(words: str) -> list[Note]:
        return []

    def other(note: Other) -> Other:
        return note

    scope = {"Note": Note, "Other": Other}
    Note.model_rebuild(_types_namespace=scope)
    for function in (add, find, other):
        function.__annotations__ = {
            name: {"Note": Note, "Other": Other, "list[Note]": list[Note], "str": str}[kind]
            for name, kind in function.__annotations__.items()
        }
        app.add_tool(function)
    contract = contract_of(app.document)
    assert [tool.output for tool in contract.tools] == ["Note", "FindOutput", "Other"]
    assert [name for name in contract.types.definitions if "Note" in name] == ["Note"]
    for name, type in (("AddInput", Ref("Note")), ("FindOutput", Array(Ref("Note")))):
        whole = contract.types.definitions[name].type
        assert isinstance(whole, Object)
        assert [field.type for field in whole.fields] == [type]


def test_two_types_with_the_same_name_become_two_definitions() -> None:
    def entry(name: str, kind: str) -> dict[str, Any]:
        note = {"type": "object", "properties": {"text": {"type": kind}}}
        taken = {"type": "object", "properties": {"note": {"$ref": "#/$defs/Note"}}, "$defs": {"Note": note}}
        return {"name": name, "inputSchema": taken}

    contract = contract_of({"tools": [entry("a", "string"), entry("b", "integer")]})
    assert sorted(contract.types.definitions) == ["AInput", "AInputNote", "BInput", "BInputNote"]
