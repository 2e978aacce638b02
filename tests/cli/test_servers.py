"""SERVER on the command line: each form names the same server in every command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mcp_bindgen.cli.options import SERVERS
from mcp_bindgen.cli.servers import FORMS, named
from mcp_bindgen.spec import BadInput
from tests.support.commands import ROOT, answered, complaint, inside

APP = """
from mcp_bindgen.app import App

library = App("library")

@library.tool
def find(words: str) -> list[str]:
    "Find books."
    return [f"about {words}"]

@library.prompt
def advise() -> str:
    return "Read."
"""
ENTRY = {"command": sys.executable, "args": ["library.py"], "env": {"PLACE": "here", "API_KEY": "${API_KEY}"}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a server of each kind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("API_KEY", "s3cret")
    Path("library.py").write_text(APP, "utf-8")
    Path("program.py").write_text("from mcp_bindgen.app import run\nfrom library import library\n\nrun(library)\n")
    Path("guarded.py").write_text(f"{APP}\nif __name__ == '__main__':\n    print('served elsewhere')\n")
    Path("package").mkdir()
    Path("package/__main__.py").write_text("import program\n")
    Path("mcp.json").write_text(json.dumps({"mcpServers": {"books": ENTRY, "far": {"url": "https://x.org/mcp"}}}))
    Path("weather/src/weather_server").mkdir(parents=True)
    Path("weather/pyproject.toml").write_text(
        '[project]\nname = "weather"\n[tool.mcp-bindgen]\nkind = "server"\npackage = "weather_server"\n'
        'revisions = ["2025-11-25"]\ntransports = ["stdio"]\n'
    )
    return tmp_path


LAUNCHER = ["-m", "mcp_bindgen.app"]


def test_a_server_argument_is_resolved_to_a_command_and_a_name(folder: Path) -> None:
    for words, arguments, name in [
        ("library.py", [*LAUNCHER, "HERE/library.py"], "library"),
        ("library.py:library", [*LAUNCHER, "HERE/library.py:library"], "library"),
        ("./program.py", ["HERE/program.py"], "program"),
        ("guarded.py", ["HERE/guarded.py"], "guarded"),
        ("guarded.py:library", [*LAUNCHER, "HERE/guarded.py:library"], "guarded"),
        ("library", [*LAUNCHER, "library"], "library"),
        ("library:library", [*LAUNCHER, "library:library"], "library"),
        ("program", ["-m", "program"], "program"),
        ("package", ["-m", "package"], "package"),
        ("weather", ["-m", "weather_server"], "weather"),
        ("mcp.json#books", ["library.py"], "books"),
        ("uvx example-server@1.2 --fast", ["example-server@1.2", "--fast"], "example-server"),
        ("echo", [], "echo"),
        ("python -m library", ["-m", "library"], "library"),
    ]:
        found = named(words, ["A=1"])
        assert [argument.replace(str(folder), "HERE") for argument in found.entry.args] == arguments
        assert (found.name, found.entry.env["A"]) == (name, "1")
        assert found.entry.command in (sys.executable, words.split()[0])


def test_urls_accept_no_environment_variables() -> None:
    assert (named("https://user@www.x.org:8/mcp").name, named("mcp.json#far").entry.url) == ("x", "https://x.org/mcp")
    with pytest.raises(BadInput, match="--env is for servers that are started here"):
        named("mcp.json#far", ["A=1"])


def test_an_invalid_server_argument_gives_a_one_line_error() -> None:
    for words, message in [
        ("libary.py", "libary.py: there is no such file; did you mean library.py?"),
        ("libary:app", "there is no module 'libary'; run this in its folder, or install it"),
        ("mcp.json#book", "mcp.json: no server 'book'; did you mean books?"),
        ("mcp.json", "mcp.json is a file of servers: say mcp.json#books or mcp.json#far"),
        ("weather/src", "no project of ours"),
        ("gopher://x", "no transport for gopher:"),
        ("", "the command is empty"),
    ]:
        for command in (["call"], ["dev"], ["install", "--file", "x.json"], ["contract", "export"]):
            assert message in complaint(*command, words)


@pytest.mark.full
def test_an_app_that_does_not_run_itself_can_be_called() -> None:
    for words in ["library.py", "library:library", "mcp.json#app"]:
        entry = {"command": sys.executable, "args": [*LAUNCHER, "library.py"]}
        Path("mcp.json").write_text(json.dumps({"mcpServers": {"app": entry}}))
        printed = answered("call", words, "tools/call", "find", '{"words": "tea"}', "--json")
        assert json.loads(printed)["structuredContent"] == {"result": ["about tea"]}


@pytest.mark.full
def test_an_app_is_exported_installed_and_scaffolded(folder: Path) -> None:
    exported = inside("contract", "export", "library.py").stdout
    assert [prompt["name"] for prompt in json.loads(exported)["prompts"]] == ["advise"]
    assert inside("contract", "from-module", "library").stdout == exported
    assert json.loads(inside("contract", "export", "program.py").stdout)["tools"] == json.loads(exported)["tools"]

    assert inside("install", "library.py", "--file", "hosts.json").returncode == 0
    assert inside("install", "mcp.json#books", "--file", "hosts.json").returncode == 0
    written = json.loads(Path("hosts.json").read_text())["mcpServers"]
    assert written["library"]["args"] == [*LAUNCHER, str(folder / "library.py")]
    assert written["books"]["env"] == {"PLACE": "here", "API_KEY": "${API_KEY}"}
    assert "s3cret" not in Path("hosts.json").read_text()

    assert inside("scaffold", "server", "shelf", "--from-module", "library.py").returncode == 0
    project = Path("shelf/src/shelf")
    assert project.joinpath("library.py").read_text() == APP
    assert "delegate(library.find, arguments, ctx" in project.joinpath("server.py").read_text()


def test_secrets_of_an_entry_are_not_installed() -> None:
    for entry in ({**ENTRY, "env": {"API_KEY": "k"}}, {"url": "https://x.org/", "headers": {"X-Key": "k"}}):
        Path("mcp.json").write_text(json.dumps({"mcpServers": {"books": entry}}))
        assert "must not be written" in complaint("install", "mcp.json#books", "--file", "hosts.json")
    assert not Path("hosts.json").exists()


def test_help_and_documentation_list_every_form_of_server_argument() -> None:
    page = (ROOT / "docs" / "how-to" / "call-a-server.md").read_text("utf-8")
    for form in FORMS:
        assert form in SERVERS
        assert f"| `{form}` | " in page
