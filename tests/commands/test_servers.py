"""SERVER on the command line: each form names the same server in every command."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import pytest

from mcp_bindgen.cli.options import SERVERS
from mcp_bindgen.commands.servers import FORMS, named, public
from mcp_bindgen.spec import BadInput
from tests.harness.commands import ROOT, answered, complaint, inside

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


COMMENTED = """// mine
{
  "inputs": [{"type": "promptString", "id": "token"}],
  "servers": {
    "books": {"command": "echo", "args": ["${workspaceFolder}", "${env:API_KEY}", "${userHome}${/}x",],}, // first
    "asking": {"command": "echo", "env": {"TOKEN": "${input:token}"}},
  },
}
"""


def test_an_entry_of_an_editor_is_read_with_its_comments_and_references(folder: Path) -> None:
    Path(".vscode").mkdir()
    Path(".vscode/mcp.json").write_text(COMMENTED, "utf-8")
    Path("elsewhere").mkdir()
    with contextlib.chdir("elsewhere"):
        args = named("../.vscode/mcp.json#books").entry.args
    assert args == (str(folder), "s3cret", str(Path.home() / "x"))
    for command in (["call"], ["gateway"], ["lock", "update"], ["tap"], ["contract", "export"]):
        said = complaint(*command, ".vscode/mcp.json#asking")
        assert '"env" has ${input:token}, which only a host fills in; write ${env:NAME} in its place' in said


def test_secrets_of_a_command_line_are_not_shown() -> None:
    for words, shown in [
        ("npx -y x --api-key s3cret --fast", "npx -y x --api-key ... --fast"),
        ("x --token=s3=cret= --path=/a", "x --token=... --path=/a"),
        ("env T=s3cret python x.py", "env T=... python x.py"),
        ("docker run -e T=s3cret -eU=s3cret --env=V=s3cret x", "docker run -e T=... -eU=... --env=V=... x"),
        ("x https://me:s3cret@y/mcp?a=b&api_key=s3cret#c", "x 'https://y/mcp?a=...'"),
        ("x --db=postgres://me:s3cret/s3cret@y/db", "x --db=postgres://y/db"),
        ("uvx --from git+https://s3cret@y/z z", "uvx --from git+https://y/z z"),
        ("x --header 'X-Own: s3cret' 'Authorization: Bearer s3cret'", "x --header ... 'Authorization: Bearer ...'"),
        ("x -p s3cret --user me:s3cret --pass s3cret", "x -p ... --user ... --pass ..."),
        ("x --passphrase s3cret --dpop-proof=s3cret", "x --passphrase ... --dpop-proof=..."),
        ("PGPASSWORD=s3cret B=s3cret x", "PGPASSWORD=... B=... x"),
        ("env -S 'T=s3cret x'", "env -S T=..."),
        ("sh -c 'export A=s3cret; x'", "sh -c 'export A=...'"),
        ("sh -c 'x --token s3cret'", "sh -c 'x --token ...'"),
        ("x 'Server=h;Password=s3cret'", "x Server=..."),
        ('x \'{"Authorization" : "Bearer s3cret"}\'', 'x \'{"Authorization" : "Bearer ...\''),
        ("x 'a --token s3cret", "x 'a --token ..."),
        ('x --config \'{"apiKey": "s3cret"}\'', 'x --config \'{"apiKey": "...\''),
    ]:
        assert public(words) == shown
    for words in [
        "x --token",
        "uvx --from git+ssh://git@y/z z",
        "npx @a/b@1 http://y:80/@c",
        "x 'a  b'",
        "x postgres://me@y/z --max-tokens=5 --key-file /a a==1",
        "x 'a",
    ]:
        assert public(words) == words


def test_the_name_of_a_server_is_no_secret() -> None:
    for words, name in [
        ("x --token s3cret b", "b"),
        ("env T=s3cret python x.py", "python"),
        ("x https://y?k=s3cret", "x"),
    ]:
        assert named(words).name == name


def test_both_members_with_servers_are_read(folder: Path) -> None:
    Path("both.json").write_text('{"servers": {"a": {"command": "x"}}, "mcpServers": {"b": {"command": "y"}}}', "utf-8")
    assert [named(f"both.json#{name}").entry.command for name in "ab"] == ["x", "y"]


@pytest.mark.full
def test_a_generated_client_repeats_no_secrets() -> None:
    words = f"env T=s3cret {sys.executable} -m mcp_bindgen.app library.py"
    assert inside("client", "--from", words, "--out", "shelf.py").returncode == 0
    assert "env T=... " in Path("shelf.py").read_text("utf-8")
    assert not [file for file in Path().glob("shelf*") if "s3cret" in file.read_text("utf-8")]


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
