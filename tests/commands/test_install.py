"""`mcp-bindgen install`: the entry for each host, unchanged parts of the file, and the refusal of secrets."""

from __future__ import annotations

import codecs
import json
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_bindgen.commands.install import HOSTS, place_of
from mcp_bindgen.host import Host
from mcp_bindgen.spec.jsonc import loads
from mcp_bindgen.v2025_11_25 import Client
from tests.harness.commands import ROOT, answered, complaint, inside

EXAMPLE = ROOT / "examples" / "weather_server.py"
COMMAND = f"'{sys.executable}' '{EXAMPLE}'"

COMMENTED = """// mine
{
\t"mcpServers": {
\t\t// the first
\t\t"one": {"command": "x", "env": {"A": "b"},}, // stays
\t},
\t"theme": "dark", /* as it was */
}
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty home folder without any configuration."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def done(*arguments: object) -> str:
    """Return the output of `install`, which must succeed."""
    return answered("install", *arguments)


def servers(file: Path) -> Any:
    """Return the servers in a configuration."""
    return json.loads(file.read_text("utf-8"))["mcpServers"]


@pytest.mark.parametrize("host", HOSTS)
def test_a_server_is_added_to_the_configuration_of_every_host(host: str, home: Path) -> None:
    done(COMMAND, "--host", host, "--name", "weather")
    file = place_of(host, project=False)
    assert file.is_relative_to(home)
    text = file.read_text("utf-8")
    known = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    entry = known[HOSTS[host].member]["weather"]
    assert (entry["command"], entry["args"]) == (sys.executable, [str(EXAMPLE)])
    assert "weather is up to date" in done(COMMAND, "--host", host, "--name", "weather")
    assert file.read_text("utf-8") == text


@pytest.mark.full
def test_an_added_server_starts() -> None:
    done(COMMAND, "--file", "mcp.json")

    async def tools() -> list[str]:
        async with Host.from_config("mcp.json", client=Client) as host:
            assert not host.failures
            return [offer.item.name for offer in await host.tools()]

    assert "forecast" in anyio.run(tools)


def test_comments_and_other_entries_are_kept(home: Path) -> None:
    file, backup = home / "mcp.json", home / "mcp.json.bak"
    file.write_text(COMMENTED, "utf-8")
    file.chmod(0o600)
    said = done(COMMAND, "--file", file, "--name", "weather")
    assert said.startswith(f"{file}: added weather; the previous file is mcp.json.bak\n")
    text = file.read_text("utf-8")
    assert set(COMMENTED.splitlines()) <= set(text.splitlines())
    known = loads(text)
    assert known["mcpServers"]["one"] == loads(COMMENTED)["mcpServers"]["one"]
    assert known["theme"] == "dark"
    assert backup.read_text("utf-8") == COMMENTED
    assert [stat.S_IMODE(one.stat().st_mode) for one in (file, backup)] == [0o600, 0o600]


@pytest.mark.parametrize("name", ["mcp.json", "config.toml"])
def test_line_ends_and_byte_order_mark_are_kept(name: str, home: Path) -> None:
    before = b'{"a": 1}\r\n' if name == "mcp.json" else b"a = 1\r\n"
    (home / name).write_bytes(codecs.BOM_UTF8 + before)
    done(COMMAND, "--file", name, "--name", "weather")
    after = (home / name).read_bytes()
    assert after.startswith(codecs.BOM_UTF8 + before[:5])
    assert after.count(b"\n") == after.count(b"\r\n") > 3
    answered("uninstall", "weather", "--file", name)
    assert b"\n" not in (home / name).read_bytes().replace(b"\r\n", b"")


def test_comments_in_toml_are_kept(home: Path) -> None:
    file = home / ".codex" / "config.toml"
    file.parent.mkdir()
    file.write_text('# mine\nmodel = "x" # stays\n\n[mcp_servers.one]\ncommand = "y" # this too\n', "utf-8")
    done(COMMAND, "--host", "codex", "--name", "weather", "--env", "API_KEY", "--env", "PLACE=here")
    text = file.read_text("utf-8")
    assert text.startswith('# mine\nmodel = "x" # stays\n\n[mcp_servers.one]\ncommand = "y" # this too\n')
    entry = tomllib.loads(text)["mcp_servers"]["weather"]
    assert (entry["env"], entry["env_vars"]) == ({"PLACE": "here"}, ["API_KEY"])


TABLES = [
    'mcp_servers.a.command = "x"\nmcp_servers.a.args = ["1"]  # mine\nother = 1\n\n[tui]\nx = nan\n',
    'mcp_servers = { a = { command = "x" } }  # mine\nother = 1\n',
    'mcp_servers.a = { command = "x" }  # mine\nother = 1\n',
    '[mcp_servers]\na.command = "x"  # mine\n\n[tui]\nx = 2020-01-01\n',
    '[mcp_servers.a]\ncommand = "x"  # mine\n\n[tui]\nx = 1\n\n[mcp_servers.b]\ncommand = "y"\n',
    'mcp_servers.a.command = "x"  # mine\n[mcp_servers.b.env]\nC = "y"\n',
    "mcp_servers = {}  # mine\nother = 1\n",
    '[mcp_servers.a]\ncommand = "x"\n[mcp_servers.a.env]\nB = "c"\n\n# about tui\n[tui]\nx = 1  # mine\n# end\n',
    '[mcp_servers.a]\ncommand = "x"  # mine\n\n# end\n',
]


COMMENTS = ("# about", "# end")


@pytest.mark.parametrize("before", TABLES)
def test_other_entries_keep_their_meaning_however_tables_are_written(before: str) -> None:
    file = place_of("codex", project=False)
    file.parent.mkdir()

    def others(text: str, name: str) -> str:
        found = tomllib.loads(text)
        servers = found.pop("mcp_servers", {})
        servers.pop(name, None)
        return repr([found, servers])

    for name in (*tomllib.loads(before)["mcp_servers"], "weather"):
        file.write_text(before, "utf-8")
        done(COMMAND, "--host", "codex", "--name", name, "--force", "--env", "A=b")
        text = file.read_text("utf-8")
        entry = tomllib.loads(text)["mcp_servers"][name]
        assert (entry["command"], entry["env"]) == (sys.executable, {"A": "b"})
        assert others(text, name) == others(before, name)
        assert "# mine" in text or name == "a"
        answered("uninstall", name, "--host", "codex")
        text += file.read_text("utf-8")
        assert [text.count(one) for one in COMMENTS] == [2 * before.count(one) for one in COMMENTS]
        assert others(file.read_text("utf-8"), name) == others(before, name)


def test_a_dry_run_writes_nothing(home: Path) -> None:
    (home / "mcp.json").write_text(COMMENTED, "utf-8")
    said = done(COMMAND, "--file", "mcp.json", "--dry-run")
    assert said.startswith("--- a/mcp.json\n+++ b/mcp.json\n")
    assert [line for line in said.splitlines()[2:] if line.startswith("-")] == []
    done(COMMAND, "--host", "cursor", "--project", "--dry-run")
    assert [path.name for path in home.iterdir()] == ["mcp.json"]
    assert (home / "mcp.json").read_text("utf-8") == COMMENTED


def test_a_different_server_of_the_same_name_is_replaced_only_with_force(home: Path) -> None:
    here = ("--file", "mcp.json", "--name", "x")
    done(COMMAND, *here)
    text = (home / "mcp.json").read_text("utf-8")
    complaint("install", "https://example.com/mcp", *here)
    assert (home / "mcp.json").read_text("utf-8") == text
    done("https://example.com/mcp", *here, "--force")
    assert servers(home / "mcp.json") == {"x": {"type": "http", "url": "https://example.com/mcp"}}


def test_a_symbolic_link_is_followed_and_kept(home: Path) -> None:
    (home / "dotfiles").mkdir()
    (home / "dotfiles" / "real.json").write_text("{}", "utf-8")
    (home / "mcp.json").symlink_to(home / "dotfiles" / "real.json")
    done(COMMAND, "--file", "mcp.json", "--name", "x")
    assert (home / "mcp.json").is_symlink()
    assert "x" in servers(home / "dotfiles" / "real.json")


def test_variable_references_use_the_syntax_of_each_host(home: Path) -> None:
    for host, said in (("claude-code", "${API_KEY}"), ("cursor", "${env:API_KEY}"), ("vscode", "${env:API_KEY}")):
        done(COMMAND, "--host", host, "--project", "--name", "x", "--env", "API_KEY")
        found = json.loads((home / place_of(host, project=True)).read_text())
        assert found[HOSTS[host].member]["x"]["env"] == {"API_KEY": said}


PYTHON: dict[str, Any] = {"command": sys.executable}
COPIES: list[tuple[str | None, dict[str, Any], dict[str, Any]]] = [
    (None, {**PYTHON, "args": ["--pat", "${TOKEN}", "${input:x}"], "cwd": "/srv"}, {}),
    (None, {"url": "${BASE}/mcp?key=${TOKEN}", "headers": {"X-Key": "${TOKEN:-}"}}, {}),
    (
        "claude-code",
        {**PYTHON, "args": ["--a=${TOKEN}"], "env": {"GH_PAT": "${env:TOKEN}"}},
        {"env": {"GH_PAT": "${TOKEN}"}},
    ),
    ("claude-code", {"url": "https://${TOKEN}@x/mcp", "headers": {"X-Key": "${TOKEN}"}}, {}),
    ("cursor", {**PYTHON, "args": ["${userHome}", "${TOKEN}"]}, {"args": ["${userHome}", "${env:TOKEN}"]}),
    ("cursor", {"type": "sse", "url": "https://x?token=${TOKEN}"}, {"url": "https://x?token=${env:TOKEN}"}),
    ("vscode", {**PYTHON, "cwd": "${workspaceFolder}/a", "env": {"P": "${TOKEN}"}}, {"env": {"P": "${env:TOKEN}"}}),
    ("vscode", {"url": "https://x", "headers": {"A": "Basic ${TOKEN}"}}, {"headers": {"A": "Basic ${env:TOKEN}"}}),
    ("claude-code", {"url": "https://me:${TOKEN}@x/mcp"}, {}),
    (
        "codex",
        {"url": "https://x", "headers": {"X-Region": "eu"}},
        {"headers": None, "http_headers": {"X-Region": "eu"}},
    ),
    ("codex", {**PYTHON, "cwd": "/srv", "env": {"TOKEN": "${TOKEN}"}}, {"env_vars": ["TOKEN"], "env": None}),
]


@pytest.mark.parametrize("is_dry", [False, True])
@pytest.mark.parametrize(("host", "entry", "changed"), COPIES)
def test_references_of_an_entry_are_copied_and_never_their_values(
    host: str | None,
    entry: dict[str, Any],
    changed: dict[str, Any],
    is_dry: bool,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The variables need no value here, and one that has a value is not written."""
    (home / "mcp.json").write_text(f"// mine\n{json.dumps({'servers': {'x': entry}})}", "utf-8")
    monkeypatch.setenv("TOKEN", "s3cret")
    place = home / "out.json" if host is None else place_of(host, project=False)
    where = ("--file", place) if host is None else ("--host", host)
    said = done("mcp.json#x", *where, *(["--dry-run"] if is_dry else []))
    assert "s3cret" not in said
    if is_dry:
        assert not place.exists()
        return
    text = place.read_text("utf-8")
    written = tomllib.loads(text) if place.suffix == ".toml" else json.loads(text)
    found = written[HOSTS[host].member if host else "mcpServers"]["x"]
    expected = {name: value for name, value in {**entry, **changed}.items() if value is not None}
    assert found == {**{name: found[name] for name in ("type", "args") if name in found}, **expected}


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (
        "claude-desktop",
        {"env": {"A": "${TOKEN}"}},
        "fills in no variables like ${TOKEN}; write its value there yourself",
    ),
    ("codex", {"env": {"A": "${TOKEN}"}}, "fills in no variables like ${TOKEN}; write its value there yourself"),
    ("cursor", {"args": ["${TOKEN:-b}"]}, "fills in no variables like ${TOKEN:-b}; write ${env:NAME} in its place"),
    (
        "vscode",
        {"args": ["${input:token}"]},
        "fills in no variables like ${input:token}; write ${env:NAME} in its place",
    ),
    (
        "claude-code",
        {"args": ["${workspaceFolder}"]},
        "fills in no variables like ${workspaceFolder}; write ${NAME} in its place",
    ),
    *((host, {"cwd": "/srv"}, 'takes no "cwd"; remove it') for host in ("claude-desktop", "claude-code", "cursor")),
    ("cursor", {"env": {"GH_PAT": "s3cret"}}, "GH_PAT is a secret"),
    ("cursor", {"env": {"API_KEY": "${TOKEN:-s3cret}"}}, "API_KEY is a secret"),
    ("cursor", {"env": {"DB": "postgres://me:s3cret@x/db"}}, "DB=postgres://x/db is a secret"),
    ("cursor", {"args": ["postgres://me:s3cret@x/db"]}, "postgres://x/db is a secret"),
    ("cursor", {"args": ["-e", "API_KEY=s3cret"]}, "API_KEY is a secret"),
    ("cursor", {"args": ["--header", "Authorization: Bearer s3cret"]}, "is a secret"),
    ("cursor", {"args": ["-c", "export API_KEY=s3cret; x"]}, "export API_KEY is a secret"),
    ("cursor", {"args": ["--header", '{"Authorization": "Bearer s3cret"}']}, "is a secret"),
    ("cursor", {"args": ["--config", '{"apiKey": "s3cret"}']}, "is a secret"),
]


def test_an_entry_that_a_host_cannot_take_without_loss_is_refused(home: Path) -> None:
    for host, members, said in REFUSED:
        (home / "mcp.json").write_text(json.dumps({"mcpServers": {"x": {**PYTHON, **members}}}), "utf-8")
        shown = complaint("install", "mcp.json#x", "--host", host)
        assert said in shown
        assert "s3cret" not in shown
        assert not place_of(host, project=False).exists()


def test_members_of_an_entry_that_are_not_copied_are_named(home: Path) -> None:
    members = {"envFile": ".env", "disabled": True}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": {"x": {**PYTHON, **members}}}), "utf-8")
    shown = inside("install", "mcp.json#x", "--host", "cursor", code=0)
    assert shown.stderr == "warning: not copied: envFile, disabled\n"


def test_settings_that_only_look_like_secrets_are_written(home: Path) -> None:
    words = (
        "--max-tokens 5 --token-limit=5 --key-file /a 'Ask for the API key' \"key = 'b'\" postgres://me@x/db -p 80:80"
    )
    done(f"{COMMAND} {words}", "--file", "mcp.json", "--env", "TOKEN_LIMIT=5")


def test_a_scaffolded_project_is_added_by_its_folder(home: Path) -> None:
    assert inside("scaffold", "server", "weather").returncode == 0
    done("weather", "--file", "mcp.json")
    entry = servers(home / "mcp.json")["weather"]
    assert (entry["args"], entry["env"]) == (["-m", "weather"], {"PYTHONPATH": str(home / "weather" / "src")})


BAD = [
    ((COMMAND,), "give --host"),
    ((COMMAND, "--host", "emacs"), "there is no host 'emacs'; known: claude-desktop"),
    ((COMMAND, "--host", "codex", "--file", "x.json"), "--host and --file exclude each other"),
    ((COMMAND, "--file", "x.json", "--project"), "--file and --project exclude each other"),
    ((COMMAND, "--host", "claude-desktop", "--project"), "Claude Desktop has no project file"),
    (("https://example.com", "--host", "claude-desktop"), "Claude Desktop takes no URL from its file"),
    (("https://me:pw@example.com", "--file", "x.json"), "the URL contains a secret"),
    (("https://example.com/?api_key=s3cret", "--file", "x.json"), "the URL contains a secret"),
    ((COMMAND, "--file", "x.json", "--env", "API_KEY=s3cret"), "API_KEY looks like a secret"),
    ((f"{COMMAND} --token=s3cret", "--file", "x.json"), "--token is a secret"),
    ((f"{COMMAND} --token s3cret", "--file", "x.json"), "--token is a secret"),
    ((COMMAND, "--host", "claude-desktop", "--env", "API_KEY"), "Claude Desktop fills in no variables"),
    (("no-such-program x", "--file", "x.json"), "there is no program 'no-such-program'"),
    ((COMMAND, "--file", "x.json", "--name", "a b"), "'a b' is not a valid name for a server"),
    ((COMMAND, "--file", "bad.json"), "bad.json: line 1: this is no JSON value; correct it there"),
    ((COMMAND, "--file", "list.json"), "list.json: the document is not an object"),
]


def test_bad_input_is_refused_in_one_line_and_writes_nothing(home: Path) -> None:
    for words, said in BAD:
        (home / "bad.json").write_text("nonsense", "utf-8")
        (home / "list.json").write_text("[]", "utf-8")
        shown = complaint("install", *words)
        assert said in shown
        assert "s3cret" not in shown
        assert sorted(path.name for path in home.iterdir()) == ["bad.json", "list.json"]


# --- uninstall ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", HOSTS)
def test_uninstalling_a_server_restores_the_file(host: str, home: Path) -> None:
    """The file is restored exactly, including comments and other entries."""
    file, member = place_of(host, project=False), HOSTS[host].member
    as_json = f'// mine\n{{\n  "{member}": {{\n    "other": {{"command": "x"}} // keep\n  }},\n  "theme": 1\n}}\n'
    as_toml = f'# mine\ntheme = 1\n\n[{member}.other]  # keep\ncommand = "x"\n'
    before = as_toml if file.suffix == ".toml" else as_json
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(before, "utf-8")
    done(COMMAND, "--host", host, "--name", "weather")
    entered = file.read_text("utf-8")
    shown = inside("uninstall", "weather", "--host", host, "--dry-run", code=0)
    assert any(line.startswith("-") and "weather" in line for line in shown.stdout.splitlines())
    assert file.read_text("utf-8") == entered
    removed = answered("uninstall", "weather", "--host", host)
    assert f"removed weather; the previous file is {file.name}.bak" in removed
    assert file.read_text("utf-8").rstrip() == before.rstrip()
    assert file.with_name(f"{file.name}.bak").read_text("utf-8") == entered


def test_uninstalling_an_unknown_server_is_refused(home: Path) -> None:
    (home / "mcp.json").write_text('{"mcpServers": {"weather": {"command": "x"}, "notes": {}}}', "utf-8")
    for words, said in (
        (("wether", "--file", "mcp.json"), "has no server 'wether'; there are: weather, notes"),
        (("x", "--file", "nowhere.json"), "has no server 'x'; there are none"),
        (("x", "--host", "codex"), "config.toml: has no server 'x'; there are none"),
        (("x",), "the configuration file is not known; give --host ("),
    ):
        assert said in complaint("uninstall", *words)
    assert [path.name for path in home.iterdir()] == ["mcp.json"]


def test_the_configuration_path_of_a_host_depends_on_the_platform(home: Path) -> None:
    for platform, said in [
        ("darwin", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("win32", "AppData/Roaming/Claude/claude_desktop_config.json"),
        ("linux", ".config/Claude/claude_desktop_config.json"),
    ]:
        assert place_of("claude-desktop", project=False, platform=platform) == home / said
