"""`mcp-bindgen contract` with real servers and files: its files, messages and exit codes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.commands.live import Connection, offers
from mcp_bindgen.contract.document import read_contract
from mcp_bindgen.spec import BadInput
from tests.harness.commands import COMMAND, ROOT, Done, answered, complaint, inside, save
from tests.harness.forks import PYTHON

EXAMPLE = ROOT / "examples" / "weather_server.py"
WEATHER = f"'{PYTHON}' '{EXAMPLE}'"

VERBATIM = """
from mcp_bindgen.runtime import run
from mcp_bindgen.v2025_11_25 import Server, types as mcp
import json
from pathlib import Path

DOCUMENT = json.loads(Path(__file__).with_name("tools.json").read_text("utf-8"))

class Verbatim(Server):
    instructions = "Ask nicely."

    async def list_tools(self, params, ctx):
        page = int(params.cursor or 0)
        more = {"nextCursor": str(page + 1)} if page + 1 < len(DOCUMENT["tools"]) else {}
        return {"tools": DOCUMENT["tools"][page : page + 1], **more}

    async def call_tool(self, params, ctx):
        return mcp.CallToolResult(content=[])

run(Verbatim())
"""

STUCK = VERBATIM.replace("str(page + 1)", "'0'")
TEXT = {"type": "string"}


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """Return a tool with members in unusual order, some of them unknown."""
    schema = {"required": [], "x-odd": [1.0, 1e3, None], "properties": properties, "type": "object"}
    return {"x-vendor": {"b": 1, "a": 2}, "inputSchema": schema, "description": f"The {name}.", "name": name}


@pytest.fixture
def served(tmp_path: Path) -> str:
    """Return the command of a server that lists the tools of a file verbatim, one per page."""
    script = tmp_path / "verbatim_server.py"
    script.write_text(VERBATIM, "utf-8")
    save(tmp_path / "tools.json", {"tools": [tool("z-last", b=TEXT, a={}), tool("a.first"), tool("é")]})
    return f"'{PYTHON}' '{script}'"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Return an old contract and a new contract that breaks clients of the old one."""
    old, new = tool("find", q=TEXT), tool("find", q=TEXT)
    new["inputSchema"]["required"] = ["q"]
    return save(tmp_path / "old.json", {"tools": [old]}), save(tmp_path / "new.json", {"tools": [new]})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a server project with one tool."""
    contract = save(tmp_path / "contract.json", {"tools": [tool("find", q=TEXT)]})
    assert inside("scaffold", "server", "finder", "--contract", contract, "--out", tmp_path).returncode == 0
    return tmp_path / "finder"


# --- export ---------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_a_server_is_exported_as_a_contract() -> None:
    document = json.loads(answered("contract", "export", WEATHER))
    assert list(document) == ["serverInfo", "revision", "tools", "prompts", "resources", "resourceTemplates"]
    assert document["resourceTemplates"] == []  # resources are declared, but templates have no handler
    assert (document["serverInfo"]["name"], document["revision"]) == ("weather", "2026-07-28")
    assert [entry["name"] for entry in document["tools"]] == ["forecast", "await_sun"]


@pytest.mark.full
def test_entries_are_exported_verbatim(served: str, tmp_path: Path) -> None:
    told = json.loads((tmp_path / "tools.json").read_text("utf-8"))["tools"]
    document = offers(served).document
    assert document["instructions"] == "Ask nicely."
    assert json.dumps(document["tools"]) == json.dumps(told)  # compares the order of members, too


@pytest.mark.full
@pytest.mark.parametrize("name", ["contract.json", "contract.yaml"])
def test_a_contract_is_exported_to_a_file(served: str, tmp_path: Path, name: str) -> None:
    assert answered("contract", "export", served, "--out", tmp_path / name) == ""
    contract = read_contract(tmp_path / name)
    assert [one.name for one in contract.tools] == ["z-last", "a.first", "é"]
    assert [dict(one.raw) for one in contract.tools] == offers(served).document["tools"]
    assert answered("contract", "diff", tmp_path / name, served) == "Nothing changed.\n"


@pytest.mark.full
def test_the_revision_can_be_chosen() -> None:
    echo = f"'{PYTHON}' '{ROOT / 'benchmarks' / 'echo_server.py'}' 2024-11-05"
    assert offers(echo, Connection("2024-11-05")).revision == "2024-11-05"
    assert offers(echo).revision == "2024-11-05"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Yield the URL of the weather server over Streamable HTTP."""
    command = [PYTHON, str(EXAMPLE), "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        yield server.stderr.readline().split()[-1]
        server.terminate()


@pytest.mark.full
def test_commands_urls_and_config_entries_give_the_same_contract(url: str, tmp_path: Path) -> None:
    entries = {"local": {"command": PYTHON, "args": [str(EXAMPLE)]}, "remote": {"url": url, "type": "http"}}
    config = save(tmp_path / "mcp.json", {"mcpServers": entries})
    found = [offers(server).document for server in (WEATHER, url, f"{config}#local", f"{config}#remote")]
    assert all(one == found[0] for one in found)
    assert inside("call", f"{config}#local", "resources/read", "weather://cities").stdout == "Bergen\nCairo\nOslo\n"


def test_credentials_in_a_url_are_not_written_to_files(url: str, tmp_path: Path) -> None:
    out = tmp_path / "weather.py"
    private = url.replace("http://", "http://ada:hunter2@") + "?key=s3cret"
    assert inside("client", "--from", private, "--out", out).returncode == 0
    written = out.read_text() + out.with_name("weather.contract.json").read_text()
    assert f"--from '{url}?...'" in written
    assert "hunter2" not in written
    assert "s3cret" not in written


@pytest.mark.full
def test_a_list_with_a_repeated_cursor_is_refused(served: str, tmp_path: Path) -> None:
    (tmp_path / "verbatim_server.py").write_text(STUCK, "utf-8")
    assert "gives the cursor '0' twice" in complaint("contract", "export", served)


@pytest.mark.full
def test_a_waiting_message_is_shown_on_the_terminal() -> None:
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "80"}
    command = [str(COMMAND), "contract", "export", WEATHER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        assert process.stdout is not None
        assert "tools" in json.loads(process.stdout.read())
        shown = os.read(ours, 4096).decode()
        os.close(ours)
    assert "Asking" in shown
    assert "\x1b[3" not in shown  # no colour


def test_unreachable_servers_are_reported_with_the_cause(tmp_path: Path) -> None:
    config = save(tmp_path / "mcp.json", {"mcpServers": {"weather": {"url": "http://127.0.0.1:9/mcp"}, "odd": {}}})
    assert f"{config}: no server 'wether'; did you mean weather?" in complaint("contract", "export", f"{config}#wether")
    assert f"{config}: server 'odd': it needs either" in complaint("contract", "export", f"{config}#odd")
    assert "--env is for servers that are started here" in complaint(
        "contract", "export", f"{config}#weather", "--env", "A=1"
    )
    assert "No such file" in complaint("contract", "export", f"{tmp_path}/no.json#weather")
    assert "cannot connect to 'no-such-program'" in complaint("contract", "export", "no-such-program")
    assert "did you mean 2025-11-25?" in complaint("contract", "export", WEATHER, "--revision", "2025-11-52")


def test_a_server_that_refuses_to_list_is_reported(served: str, tmp_path: Path) -> None:
    code = VERBATIM.replace("page = int(params.cursor or 0)", "raise ValueError('no')")
    (tmp_path / "verbatim_server.py").write_text(code, "utf-8")
    assert "does not list its tools, prompts and resources: Internal error" in complaint("contract", "export", served)


# --- invalid entries ------------------------------------------------------------------------------------------

BAD = [
    tool("find", q=TEXT),
    {**tool("null"), "annotations": []},
    tool("find", other=TEXT),
    tool("strange", x={"type": "any"}),
    {"name": "bare", "inputSchema": {}},
    tool("lost", x={"$ref": "#/$defs/Nothing"}),
    tool("free", x=True, y=False),
]
LEFT_OUT = [
    "/tools/1/annotations of 'null': [] is not of type \"object\"",
    "/tools/2/name of 'find': 'find' is there twice",
    "/tools/3/inputSchema/properties/x/type of 'strange': is no JSON Schema: ",
    "/tools/4/inputSchema of 'bare': \"type\" is a required property",
    "/tools/5/inputSchema/properties/x of 'lost': the reference '#/$defs/Nothing' leads nowhere",
]


@pytest.fixture
def careless(served: str, tmp_path: Path) -> str:
    """Return the command of a server with five invalid and two valid tools."""
    save(tmp_path / "tools.json", {"tools": BAD})
    return served


def reporting(*words: object, code: int = 0, word: str = "warning") -> Done:
    """Run a command that must report the number of invalid entries, then one line for each with its reason."""
    done = inside(*words)
    first, *rest = done.stderr.splitlines()
    assert first == f"{word}: 5 entries of the server are not valid, and left out:"
    assert len(rest) == len(LEFT_OUT)
    assert all(line.startswith(f"  {said}") for line, said in zip(rest, LEFT_OUT, strict=True)), rest
    assert done.returncode == code
    return done


@pytest.mark.full
def test_entries_that_are_not_valid_are_left_out(careless: str, tmp_path: Path) -> None:
    document = json.loads(reporting("contract", "export", careless).stdout)
    assert document["tools"] == [BAD[0], BAD[6]]
    file = save(tmp_path / "contract.json", document)
    assert reporting("contract", "diff", file, careless).stdout == "Nothing changed.\n"


@pytest.mark.full
def test_a_typed_client_is_generated_from_the_valid_entries(careless: str, tmp_path: Path) -> None:
    out = tmp_path / "careless.py"
    done = reporting("client", "--from", careless, "--out", out)
    assert done.stdout.splitlines()[-1] == "CarelessClient: 2 tools, MCP 2026-07-28"
    saved = json.loads(out.with_name("careless.contract.json").read_text("utf-8"))
    assert [one["name"] for one in saved["tools"]] == ["find", "free"]
    assert [f"  {one}" for one in saved["generated"]["leftOut"]] == done.stderr.splitlines()[1:]
    assert reporting("client", "--from", careless, "--out", out, "--check").stdout == "Nothing changed.\n"


@pytest.mark.full
@pytest.mark.parametrize("command", ["export", "diff", "client", "check"])
def test_strict_commands_exit_with_1_on_invalid_entries(careless: str, tmp_path: Path, command: str) -> None:
    out = tmp_path / "careless.py"
    words: dict[str, tuple[object, ...]] = {
        "export": ("contract", "export", careless),
        "diff": ("contract", "diff", save(tmp_path / "old.json", {"tools": []}), careless),
        "client": ("client", "--from", careless, "--out", out),
        "check": ("client", "--from", careless, "--out", out, "--check"),
    }
    if command == "check":
        assert inside(*words["client"]).returncode == 0
    assert reporting(*words[command], "--strict", code=1, word="error").stdout == ""
    assert out.exists() == (command == "check")


def test_a_regenerated_client_warns_of_breaking_changes(tmp_path: Path) -> None:
    schema = {"inputSchema": {"type": "object"}}
    server, out = tmp_path / "server.json", tmp_path / "books.py"
    changes = {"find lend keep": "", "find keep new": "tool lend is gone", "new": "tool find is gone and 1 more"}
    for names, warning in changes.items():
        tools = [{"name": name, **schema} for name in names.split()]
        save(server, {"serverInfo": {"name": "books", "version": "1"}, "tools": tools})
        done = inside("client", "--from", server, "--out", out)
        advice = f"warning: breaks code of the earlier client: {warning}; --check lists this in advance\n"
        assert (done.returncode, done.stderr) == (0, advice if warning else "")
    assert '"""A typed client of the server `books`: ' in out.read_text()


@pytest.mark.full
def test_optional_members_that_are_null_are_absent(served: str, tmp_path: Path) -> None:
    """Some servers write null for an absent member, and clients accept that."""
    schema = {"type": "object", "properties": {"x": {"type": ["string", "null"], "default": None, "enum": [None, "a"]}}}
    entry = {"name": "null", "description": None, "annotations": {"title": None}, "inputSchema": schema}
    save(tmp_path / "tools.json", {"tools": [entry]})
    listed = json.loads(answered("contract", "export", served, "--strict"))["tools"]
    assert listed == [{"name": "null", "annotations": {}, "inputSchema": schema}]


@pytest.mark.full
@pytest.mark.parametrize("command", ["export", "client"])
def test_a_list_without_a_valid_entry_exits_with_1(served: str, tmp_path: Path, command: str) -> None:
    save(tmp_path / "tools.json", {"tools": [BAD[3], BAD[4]]})
    out = tmp_path / "bad.py"
    words = {"export": ("contract", "export", served), "client": ("client", "--from", served, "--out", out)}
    done = inside(*words[command])
    assert (done.returncode, done.stdout, out.exists()) == (1, "", False)
    assert done.stderr.splitlines()[-1] == "error: no entry of tools is valid; correct the server's tools"


def test_invalid_entries_in_contract_files_are_errors(tmp_path: Path) -> None:
    """Invalid entries in files are errors, because the owner of a contract file can correct it."""
    assert "annotations" in complaint(
        "contract", "diff", save(tmp_path / "a.json", {"tools": BAD}), tmp_path / "a.json"
    )


# --- diff -----------------------------------------------------------------------------------------------------


def test_a_breaking_change_exits_with_1(files: tuple[Path, Path]) -> None:
    assert answered("contract", "diff", *files, code=1) == (
        "Sensible callers break: 1 breaking.\n\n"
        f"Breaking (1) {'-' * 67}\n"
        "  tool find refuses arguments that were valid: argument q is required now\n"
    )


def test_fail_on_selects_the_changes_that_exit_with_1(files: tuple[Path, Path]) -> None:
    old, new = files
    answered("contract", "diff", old, new, "--fail-on", "never")
    answered("contract", "diff", new, old)
    answered("contract", "diff", new, old, "--fail-on", "text")
    answered("contract", "diff", new, old, "--callers", "strict")
    answered("contract", "diff", new, old, "--fail-on", "any", code=1)
    answered("contract", "diff", old, old, "--fail-on", "any")


def test_the_report_has_json_markdown_and_witness_forms(files: tuple[Path, Path], tmp_path: Path) -> None:
    document = json.loads(answered("contract", "diff", *files, "--format", "json", code=1))
    assert (document["callers"], document["verdict"]) == ("sensible", "breaking")
    assert document["findings"][0]["witness"]["value"] == {}
    assert answered("contract", "diff", *files, "--format", "markdown", code=1).startswith(
        "# Sensible callers break: 1 breaking"
    )
    assert answered("contract", "diff", *files, "--format", "json", "--out", tmp_path / "d.json", code=1) == ""
    assert json.loads((tmp_path / "d.json").read_text("utf-8")) == document
    assert "is a required property: {}" in answered("contract", "diff", *files, "--witness", code=1)


@pytest.mark.full
def test_a_saved_contract_is_compared_with_a_live_server(tmp_path: Path) -> None:
    saved = tmp_path / "weather.json"
    answered("contract", "export", WEATHER, "--out", saved)
    assert answered("contract", "diff", saved, WEATHER) == "Nothing changed.\n"
    document = json.loads(saved.read_text("utf-8"))
    del document["tools"][1]
    document["tools"][0]["inputSchema"]["properties"]["days"]["maximum"] = 1
    lines = answered("contract", "diff", WEATHER, save(saved, document), code=1).splitlines()
    assert "  tool await_sun is gone" in lines
    assert any(line.startswith("  tool forecast refuses arguments that were valid: ") for line in lines)


def test_the_callers_of_a_project_are_in_its_configuration(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = {"type": "object", "properties": {"q": {"type": "string"}}, "additionalProperties": False}
    old = save(
        tmp_path / "open.json", {"tools": [{"name": "find", "inputSchema": {**closed, "additionalProperties": {}}}]}
    )
    new = save(tmp_path / "closed.json", {"tools": [{"name": "find", "inputSchema": closed}]})
    profile = tmp_path / "careful.toml"
    profile.write_text('title = "Ours"\ndate = 2026-11-29\nsource = "us"\nmembers = "any"\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    assert answered("contract", "diff", old, new).startswith("Sensible callers continue to work: 1 notation")
    for words in (("--callers", "strict"), ("--callers", str(profile))):
        assert answered("contract", "diff", old, new, *words, code=1).partition(" ")[0] in ("Strict", "Careful")
    (tmp_path / "mcp-bindgen.toml").write_text('callers = "careful.toml"\n', "utf-8")
    assert answered("contract", "diff", old, new, code=1).startswith("Careful callers break")
    assert "use a TOML file or one of sensible, strict" in complaint("contract", "diff", old, new, "--callers", "x")
    profile.write_text("formats = 1\n", "utf-8")
    assert "careful.toml: title: Field required" in complaint("contract", "diff", old, new)


def test_files_that_are_no_contract_are_refused(tmp_path: Path, files: tuple[Path, Path]) -> None:
    old, _ = files
    assert "no.json" in complaint("contract", "diff", old, tmp_path / "no.json")
    broken = save(tmp_path / "broken.json", {"tools": [{"name": "x"}]})
    assert "broken.json#/tools/0" in complaint("contract", "diff", broken, old)


# --- projects -------------------------------------------------------------------------------------------------


KEEPS, UP_TO_DATE = "The project keeps to its contract.\n", "Everything is up to date.\n"


@pytest.mark.full
def test_a_project_is_checked_and_regenerated(project: Path) -> None:
    assert (answered("contract", "check", project), answered("contract", "generate", project)) == (KEEPS, UP_TO_DATE)
    (models,) = project.rglob("models.py")
    text = models.read_text("utf-8")
    models.write_text(f"{text}# mine\n", "utf-8")
    assert "was edited" in answered("contract", "check", project, code=1)
    assert "was left" in answered("contract", "generate", project, code=1)
    assert models.read_text("utf-8") == f"{text}# mine\n"
    assert "is now models.py.edited" in answered("contract", "generate", project, "--force")
    assert models.read_text("utf-8") == text
    assert answered("contract", "check", project) == KEEPS


@pytest.mark.full
def test_new_contract_entries_are_printed_as_methods_to_paste(project: Path) -> None:
    output = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    more = [tool("find", q=TEXT), {**tool("count", q=TEXT), "outputSchema": output}, tool("sort-all")]
    save(project / "contract.json", {"tools": more})
    said = answered("contract", "generate", project)
    assert f"Missing methods; paste them into your class below {project / 'src' / 'finder'}:" in said
    methods = said.partition(":\n\n")[2]
    count = "    async def count(self, arguments: models.CountInput, ctx: Context) -> models.CountOutput:"
    assert methods.startswith(count)
    assert answered("contract", "generate", project).endswith(methods), "until they are there"
    server = project / "src" / "finder" / "server.py"
    server.write_text(f"{server.read_text('utf-8')}\n{methods}", "utf-8")
    assert (answered("contract", "check", project), answered("contract", "generate", project)) == (KEEPS, UP_TO_DATE)


@pytest.mark.full
def test_a_revision_is_added_to_a_server_with_a_contract(project: Path) -> None:
    server = (project / "src" / "finder" / "server.py").read_bytes()
    added = inside("upgrade", project, "--add", "2026-07-28")
    assert (added.returncode, added.stdout) == (0, "finder: MCP 2025-11-25 and 2026-07-28\n")
    assert 'revisions = ["2025-11-25", "2026-07-28"]' in (project / "pyproject.toml").read_text("utf-8")
    assert (project / "src" / "finder" / "server.py").read_bytes() == server
    assert json.loads(answered("contract", "check", project, "--format", "json")) == []
    for revision in ("2025-11-25", "2026-07-28"):
        options = ("--revision", revision, "--env", f"PYTHONPATH={project / 'src'}")
        assert "find" in inside("call", f"'{PYTHON}' -m finder", *options).stdout
    assert "speaks MCP 2026-07-28 already" in inside("upgrade", project, "--add", "2026-07-28").stdout


@pytest.mark.full
def test_problems_and_schemas_are_printed_in_machine_readable_formats(project: Path) -> None:
    server = project / "src" / "finder" / "server.py"
    server.write_text(server.read_text("utf-8").replace("def find", "def fund"), "utf-8")
    (problem,) = json.loads(answered("contract", "check", project, "--format", "json", code=1))
    assert problem["line"] > 0
    assert (problem["rule"], problem["fix"]) == ("method-missing", "Rename fund, if it is meant.")
    assert f"line={problem['line']}," in answered("contract", "check", project, "--format", "github", code=1)
    listed = json.loads(inside("schema", "list", "--json").stdout)
    newest = next(one for one in listed if one["name"] == "2026-07-28")
    assert {"era": "stateless", "from": "mcp-bindgen"}.items() <= newest.items()
    assert all(report["sound"] for report in json.loads(inside("schema", "status", "--json").stdout))


@pytest.mark.full
def test_a_name_that_hosts_may_refuse_causes_a_warning(tmp_path: Path) -> None:
    contract = save(tmp_path / "contract.json", {"tools": [tool("fine-1.x"), tool("sp ace/é"), tool("x" * 129)]})
    said = [f"hosts may refuse the name of the tool '{name}'; use" for name in ("sp ace/é", "x" * 129)]
    scaffolded = inside("scaffold", "server", "finder", "--contract", contract, "--out", tmp_path)
    for done in (scaffolded, inside("contract", "check", tmp_path / "finder")):
        assert done.returncode == 0
        lines = done.stderr.splitlines()
        assert len(lines) == 2
        assert all(line.startswith(f"warning: {one}") for line, one in zip(lines, said, strict=True))


def test_a_folder_that_is_no_project_is_refused(tmp_path: Path) -> None:
    assert str(tmp_path) in complaint("contract", "check", tmp_path)
    assert str(tmp_path) in complaint("contract", "generate", tmp_path)


# --- help -----------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_offers_raises_an_error_for_an_empty_command() -> None:
    with pytest.raises(BadInput, match="the command is empty"):
        offers("")


# --- tools that depend on the client's capabilities -------------------------------------------------------------

GATED = """
from mcp_bindgen.runtime import run
from mcp_bindgen.v2025_11_25 import Server, types as mcp

class Gated(Server):
    async def list_tools(self, params, ctx):
        names = ["free", *sorted({"elicitation", "roots"} & set(ctx.peer_capabilities))]
        return mcp.ListToolsResult(tools=[mcp.Tool(name=name, input_schema=mcp.ToolInputSchema()) for name in names])

run(Gated())
"""


@pytest.mark.full
def test_declared_capabilities_add_tools_to_a_typed_client(tmp_path: Path) -> None:
    server, out = tmp_path / "server.py", tmp_path / "gated.py"
    server.write_text(GATED)
    words, both = ("client", "--from", f"{PYTHON} {server}", "--out", out), ("--declare", "elicitation,roots")
    for declared, count in ((), 1), (both, 3):
        done = inside(*words, *declared, code=0)
        assert done.stdout.splitlines()[-1] == f"GatedClient: {count} tool{'s' * (count > 1)}, MCP 2026-07-28"
    assert "--declare elicitation,roots" in out.read_text()
    assert inside(*words, "--check").returncode == 1
    assert inside(*words, "--check", *both).returncode == 0
    said = "error: --declare elicitatoin: clients have no such capability; did you mean elicitation? known: "
    assert complaint(*words, "--declare", "elicitatoin").startswith(said)
