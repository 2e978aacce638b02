"""New projects: the questions of `scaffold`, the input that it refuses, and that the written files work."""

from __future__ import annotations

import json
import os
import pty
import select
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import anyio
import pytest

from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.ir import build
from mcp_bindgen.runtime.protocol.transport import Transport
from mcp_bindgen.scaffold.features import choose, features
from mcp_bindgen.scaffold.layout import layout, write_new
from mcp_bindgen.scaffold.plan import plan
from mcp_bindgen.scaffold.project import Project, names_of
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.testing import Watched
from mcp_bindgen.testing.judge import judge_of
from tests.harness.commands import COMMAND, Done, bindgen, execute, inside, save, snapshot
from tests.harness.effort import cases
from tests.harness.forks import PYTHON
from tests.harness.shared import filled

BIN = Path(sys.executable).parent
CONTRACT = """
serverInfo: {name: forecasts, version: "1.0"}
tools:
  - name: get-forecast
    description: Tells the sky over a city.
    inputSchema:
      type: object
      properties: {city: {enum: [Bergen, Oslo]}, days: {type: integer, minimum: 1}}
      required: [city]
    outputSchema:
      type: object
      properties: {skies: {type: array, items: {type: string}, minItems: 1}}
      required: [skies]
  - name: pick
    inputSchema: {type: object, not: {maxProperties: 30}}
prompts:
  - {name: pack, arguments: [{name: city, required: true, enum: [Bergen, Oslo]}]}
resources:
  - {name: cities, uri: "weather://cities"}
resourceTemplates:
  - {name: note, uriTemplate: "note://{id}"}
"""


SCOPED = """
tools:
  - {name: look, x-mcp-scopes: [files:read], inputSchema: {type: object}}
"""
ERAS = ("--revision", "2024-11-05", "--revision", "2026-07-28")


def scaffolded(*arguments: object) -> Done:
    return inside("scaffold", *arguments, code=0)


# --- written projects work ----------------------------------------------------------------------------------------


@pytest.mark.full
def test_the_printed_call_of_a_new_server_gets_a_result(tmp_path: Path) -> None:
    done = bindgen("scaffold", "server", "weather", cwd=tmp_path, code=0)
    line = next(line.strip() for line in done.stdout.splitlines() if "mcp-bindgen call" in line)
    called = execute("sh", "-c", line, cwd=tmp_path, PATH=f"{BIN}:{os.environ['PATH']}")
    assert (called.returncode, called.stdout) == (0, "Hello, Ada!\n"), called.stderr
    assert "weather/src/weather" not in done.stdout  # files are shown as a tree
    assert 'app = App("weather"' in (tmp_path / "weather" / "src" / "weather" / "server.py").read_text("utf-8")
    assert Project.read(tmp_path / "weather") == Project(tmp_path / "weather", "server", "weather", ("2025-11-25",))


def write_new_projects(folder: Path) -> None:
    """Scaffold variants missing from `test_skeletons.py`: functions, tasks, apps, contracts and authorization."""
    contract, scoped = folder / "weather.yaml", folder / "files.yaml"
    contract.write_text(CONTRACT, "utf-8")
    scoped.write_text(SCOPED, "utf-8")
    app = ("--with", "tools,resources,prompts,completions", "--transport", "stdio,http,sse")
    projects: list[tuple[str, ...]] = [
        ("server", "errands", "--with", "tools,tasks,apps"),
        ("server", "functions", *app),
        ("client", "both-asked", *ERAS, "--with", "sampling"),
        ("server", "the-server", "--contract", str(contract)),
        ("client", "the-client", "--contract", str(contract)),
        ("server", "both-protected", *ERAS, "--auth"),
        ("server", "files", "--contract", str(scoped), "--transport", "http", "--auth"),
        ("server", "guarded", "--auth"),
    ]
    for words in projects:
        scaffolded(*words, "--out", folder)


@pytest.mark.full
def test_new_projects_pass_their_tests_and_ruff(tmp_path_factory: pytest.TempPathFactory) -> None:
    """`test_types.py` checks their types."""
    folder = filled(tmp_path_factory, write_new_projects)
    for project in (folder / "the-server", folder / "the-client"):
        assert (project / "contract.yaml").read_text("utf-8") == CONTRACT
        assert Project.read(project).contract == project / "contract.yaml"
    projects = [path.parent for path in folder.glob("*/pyproject.toml")]
    assert len(projects) == 8
    for project in projects:
        words = ("-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider")
        done = execute(PYTHON, *words, cwd=project, code=0)
        assert "passed" in done.stdout
        assert "skipped" not in done.stdout
    execute(BIN / "ruff", "check", "--extend-select", "I,B,UP,RUF,SIM", *projects, code=0)


@pytest.mark.full
def test_an_app_has_an_example_and_a_test_for_each_capability(tmp_path: Path) -> None:
    scaffolded("server", "weather", "--with", "Resource,completion", "--out", tmp_path)
    folder = tmp_path / "weather"
    source = (folder / "src" / "weather" / "server.py").read_text("utf-8")
    assert [line.partition("(")[0] for line in source.splitlines() if line.startswith("@")] == [
        *("@app.resource", "@app.prompt", "@app.completion")  # a completion needs a prompt
    ]
    assert "speaks every revision of MCP over stdio." in (folder / "README.md").read_text("utf-8")
    for words in ([], ["upgrade", ".", "--to", "2026-07-28"]):
        assert not words or bindgen(*words, cwd=folder).returncode == 0
        done = execute(PYTHON, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=folder)
        assert (done.returncode, "4 passed" in done.stdout) == (0, True), done.stdout + done.stderr
    for revision in ("2024-11-05", "2026-07-28"):
        done = bindgen("call", folder, "prompts/get", "greeting", '{"name": "Ada"}', "--revision", revision)
        assert "greeting for Ada." in done.stdout, done.stderr


@pytest.mark.parametrize("words", ["--revision 2025-11-25", "--with tools,tasks", "--style class"])
def test_an_option_that_needs_a_class_selects_that_style_and_reports_it(words: str, tmp_path: Path) -> None:
    done = scaffolded("server", "weather", *words.split(), "--out", tmp_path)
    assert "class Weather(" in (tmp_path / "weather" / "src" / "weather" / "server.py").read_text("utf-8")
    lines = [line for line in done.stdout.splitlines() if "needs a class" in line]
    told = words.replace(" 2025-11-25", "").replace("tools,", "")
    expected = [f"{told} needs a class, so the server is one, as with --style class."]
    assert lines == ([] if "--style" in words else expected)


@pytest.mark.full
def test_a_server_with_tasks_uses_the_newest_revision_and_its_tool_supports_tasks(tmp_path: Path) -> None:
    scaffolded("server", "errands", "--with", "tasks", "--out", tmp_path)
    source = (tmp_path / "errands" / "src" / "errands" / "server.py").read_text("utf-8")
    assert "class Errands(tasks.Server):" in source
    assert source.count('@task(tools={GREET.name: "optional"})\n    async def call_tool') == 1
    assert "from mcp_bindgen.v2026_07_28.extensions import tasks" in source
    path = os.pathsep.join([str(tmp_path / "errands" / "src"), *sys.path])
    words = ["tools/call", "greet", '{"name": "Ada"}', "--env", f"PYTHONPATH={path}"]
    done = bindgen("call", f"{PYTHON} -m errands", *words)
    assert (done.returncode, done.stdout) == (0, "Hello, Ada!\n"), done.stderr
    scaffolded("server", "older", "--with", "tasks", "--revision", "2025-11-25", "--out", tmp_path, "--dry-run")
    scaffolded("client", "waiting", "--with", "tasks,elicitation", "--out", tmp_path)
    assert "class Waiting(tasks.Client):" in (tmp_path / "waiting" / "src" / "waiting" / "client.py").read_text("utf-8")


@pytest.mark.full
def test_a_server_has_one_module_and_supports_all_or_the_named_revisions(tmp_path: Path) -> None:
    scaffolded("server", "open", "--style", "class", "--transport", "stdio,http", "--out", tmp_path)
    scaffolded("server", "narrow", *ERAS, "--transport", "stdio,http", "--out", tmp_path)
    named = ', revisions=["2024-11-05", "2026-07-28"]'
    for name, bindings, said in (("open", "v2025_11_25", ""), ("narrow", "v2026_07_28", named)):
        source = tmp_path / name / "src" / name
        assert {path.name for path in source.glob("*.py")} == {"__init__.py", "__main__.py", "app.py", "server.py"}
        assert f"from mcp_bindgen.{bindings} import" in (source / "server.py").read_text("utf-8")
        assert f"run({name.title()}(){said})" in (source / "__main__.py").read_text("utf-8")
        assert said in (source / "app.py").read_text("utf-8")
    assert "speaks every revision" in (tmp_path / "open" / "README.md").read_text("utf-8")


@pytest.mark.full
@pytest.mark.parametrize("words", cases(["2025-11-25", "2024-11-05 2026-07-28"], quick=["2025-11-25"]))
def test_the_test_and_readme_of_an_sse_server_use_its_sse_url(words: str, tmp_path: Path) -> None:
    revisions = [option for name in words.split() for option in ("--revision", name)]
    scaffolded("server", "old", *revisions, "--transport", "sse", "--out", tmp_path)
    folder = tmp_path / "old"
    readme = (folder / "README.md").read_text("utf-8")
    assert "mcp-bindgen call http://127.0.0.1:8000/sse\n" in readme
    assert '"type": "sse",\n      "url": "http://127.0.0.1:8000/sse"' in readme
    assert Project.read(folder).transports == ("sse",)
    test = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "sse", "tests/test_app.py"]
    assert "1 passed" in execute(*test, cwd=folder, PYTHONPATH=str(folder / "src"), code=0).stdout


@pytest.mark.full
def test_a_client_without_a_reachable_server_prints_a_one_line_error(tmp_path: Path) -> None:
    scaffolded("client", "looker", "--out", tmp_path)
    done = execute(PYTHON, "-m", "looker", "false", PYTHONPATH=str(tmp_path / "looker" / "src"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.full
def test_a_protected_project_does_not_start_without_resource_and_issuer(tmp_path: Path) -> None:
    scaffolded("server", "weather", "--auth", "--out", tmp_path)
    folder = tmp_path / "weather"
    table = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    assert table["project"]["dependencies"] == ["mcp-bindgen[app,auth]>=0.1,<0.2"]
    assert table["tool"]["mcp-bindgen"]["transports"] == ["stdio", "http"]
    code = "import weather.app; weather.app.create_app()"
    cases_ = [({}, "MCP_RESOURCE and MCP_ISSUER"), ({"MCP_RESOURCE": "https://a.example/mcp"}, "MCP_IS")]
    for command, exit_code in ((("-m", "weather", "--http", "127.0.0.1:0"), 2), (("-c", code), 1)):
        for set_, missing in cases_:
            search = os.pathsep.join([str(folder / "src"), os.environ.get("PYTHONPATH", "")])
            variables: dict[str, Any] = {"MCP_ISSUER": "", "PYTHONPATH": search, **set_}
            done = execute(PYTHON, *command, **variables)
            assert (done.returncode, done.stdout) == (exit_code, ""), done.stderr
            assert f"the environment needs {missing}" in done.stderr.splitlines()[-1]
    readme = (folder / "README.md").read_text("utf-8")
    assert "| `MCP_ISSUER` |" in readme
    assert "authenticates nobody" not in readme
    assert "It does not start without MCP_RESOURCE" in (folder / "Dockerfile").read_text("utf-8")


@pytest.mark.full
def test_a_contract_with_scopes_is_refused_over_http_without_authorization(tmp_path: Path) -> None:
    contract = tmp_path / "files.yaml"
    contract.write_text(SCOPED, "utf-8")
    words = ("scaffold", "server", "files", "--contract", contract, "--out", tmp_path)
    done = inside(*words, "--transport", "http")
    assert (done.returncode, done.stdout) == (2, "")
    says = "the contract states scopes, and nothing would check them over HTTP; add --auth"
    assert done.stderr == f"error: {contract}: {says}\n"
    assert inside(*words).returncode == 0  # over stdio, the client starts the process


@pytest.mark.full
def test_the_console_script_and_the_dockerfile_start_the_server(tmp_path: Path) -> None:
    scaffolded("server", "weather", "--transport", "http", "--out", tmp_path)
    folder = tmp_path / "weather"
    table = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    assert table["project"]["scripts"] == {"weather": "weather.__main__:main"}
    assert table["project"]["dependencies"] == ["mcp-bindgen[app,http]>=0.1,<0.2"]
    dockerfile = (folder / "Dockerfile").read_text("utf-8")
    assert 'ENTRYPOINT ["python", "-m", "weather"]\nCMD ["--http", "0.0.0.0:8000"]\n' in dockerfile
    assert "ENV ALLOWED_HOSTS=localhost,127.0.0.1\n" in dockerfile
    assert "USER app\n" in dockerfile
    found = json.loads((folder / "README.md").read_text("utf-8").split("```json")[1].split("```")[0])
    assert found["mcpServers"]["weather"]["url"] == "http://127.0.0.1:8000/mcp"


@pytest.mark.full
def test_a_project_installs_an_unreleased_mcp_bindgen_from_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for said, source in (
        ('{"url": "file:///a%20b", "dir_info": {}}', "'mcp-bindgen @ file:///a%20b'"),
        ('{"url": "file:///w.whl", "archive_info": {}}', "'mcp-bindgen @ file:///w.whl'"),
        (
            '{"url": "https://a.com/r", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}}',
            "'mcp-bindgen @ git+https://a.com/r@c0ffee'",
        ),
        (None, None),
    ):
        found = Mock(**{"return_value.read_text.return_value": said})
        monkeypatch.setattr("mcp_bindgen.scaffold.layout.distribution", found)
        for kind in ("server", "client"):
            out = tmp_path / str(said is not None and len(said))
            scaffolded(kind, f"my-{kind}", "--out", out)
            readme = (out / f"my-{kind}" / "README.md").read_text("utf-8")
            install = ".venv/bin/pip install --editable '.[dev]'" + (f" {source}" if source else "")
            assert f"    {install}\n" in readme
            assert ("pip wheel" in readme) == (source is not None and kind == "server")
        dockerfile = (out / "my-server" / "Dockerfile").read_text("utf-8")
        assert ("COPY wheels ./wheels\n" in dockerfile) == ("--find-links wheels ." in dockerfile) == bool(source)


@pytest.mark.full
def test_the_help_of_a_server_describes_it_and_shows_an_example(tmp_path: Path) -> None:
    contract = save(tmp_path / "notes.json", {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]})
    scaffolded("server", "notes", "--contract", contract, "--out", tmp_path)
    search = os.pathsep.join([str(tmp_path / "notes" / "src"), os.environ.get("PYTHONPATH", "")])
    done = execute(PYTHON, "-m", "notes", "--help", PYTHONPATH=search)
    assert done.stdout.startswith("usage: python -m notes [-h]")
    assert "Serve `notes`: its tools." in done.stdout
    assert "example: python -m notes --http 127.0.0.1:8000" in done.stdout


def test_a_name_in_the_readme_stays_in_its_block_of_code(tmp_path: Path) -> None:
    names = ("add\n<script>boo()</script>", "subtract")
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    contract = save(tmp_path / "notes.json", {"tools": tools})
    scaffolded("server", "notes", "--contract", contract, "--out", tmp_path)
    readme = (tmp_path / "notes" / "README.md").read_text("utf-8")
    assert "<script>" not in readme
    assert "tools/call subtract" in readme


def test_a_client_may_come_from_the_file_of_a_contract(tmp_path: Path) -> None:
    contract = save(tmp_path / "notes.json", {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]})
    for option in ("--from", "--contract"):
        scaffolded("client", "notes", option, contract, "--out", tmp_path / option)
    assert snapshot(tmp_path / "--from") == snapshot(tmp_path / "--contract")


@pytest.mark.full
def test_a_server_with_any_name_passes_ruff(tmp_path: Path) -> None:
    contract = save(tmp_path / "notes.json", {"prompts": [{"name": "hello"}]})
    for name in ("acme", "zoo"):
        scaffolded("server", name, "--contract", contract, "--out", tmp_path)
    execute(BIN / "ruff", "check", "--no-cache", "--extend-select", "I", tmp_path, code=0)


class Told(Transport):
    """Transport that delivers the given messages."""

    def __init__(self, *messages: bytes) -> None:
        self.messages = messages

    async def receive(self) -> tuple[bytes, ...]:
        return self.messages

    async def send(self, messages: Sequence[bytes]) -> None: ...

    async def close(self) -> None: ...


def test_messages_of_a_server_under_test_are_validated() -> None:
    rows: list[tuple[str, Any, str | None]] = [
        ("2025-11-25", {"id": 1, "result": {"content": []}}, None),
        ("2025-11-25", {"id": 1, "result": {"content": [{"type": "text"}]}}, "CallToolResult"),
        ("2025-11-25", {"id": 1, "result": {"task": {}}}, "CallToolResult or CreateTaskResult"),
        ("2025-11-25", {"method": "notifications/progress", "params": {}}, "ProgressNotification"),
        ("2026-07-28", {"id": 1, "result": {"content": []}}, "resultType"),
        ("2026-07-28", {"id": 1, "result": {"content": [], "resultType": "complete"}}, None),
        ("2025-03-26", [{"id": 1, "result": {"content": []}}, {"id": 2, "result": 1}], "JSONRPCResponse"),
    ]
    for revision, message, said in rows:
        messages = [{"jsonrpc": "2.0", **one} for one in (message if isinstance(message, list) else [message])]
        watched = Watched(Told(json.dumps(messages if isinstance(message, list) else messages[0]).encode()))
        anyio.run(watched.send, [b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}}'])
        anyio.run(watched.receive)
        judge = judge_of(revision)
        problems = [str(problem) for one, asked in watched.received for problem in judge.violations(one, asked)]
        assert bool(problems) == (said is not None)
        assert said is None or any(said in problem for problem in problems)


# --- refused input ------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_bad_input_is_refused_in_one_line(tmp_path: Path) -> None:
    for words, said in [
        (("class",), "a word of Python's; try class-server"),
        (("json",), "would stand in the way of the module json; try my-json"),
        (("mcp-bindgen",), "would stand in the way of the module mcp_bindgen"),
        (("2fast",), "is no name for a project"),
        (("a/b",), "is no name for a project"),
        (("..",), "is no name for a project"),
        (("x", "--with", "toolz"), "no capability 'toolz'; did you mean tools?"),
        (("x", "--with", ","), "--with names nothing; give names, as in --with tools,resources"),
        (("x", "--transport", "tcp"), "no transport 'tcp'; known: stdio, http, sse"),
        (("x", "--transport", "sse", "--revision", "2026-07-28"), "MCP 2026-07-28 has no HTTP+SSE; give an older"),
        (("x", "--auth", "--transport", "stdio"), "--auth is for servers over HTTP; add http to --transport"),
        (("x", "--revision", "2025-11-26"), "did you mean 2025-11-25?"),
        (("x", "--style", "app", "--revision", "2025-11-25"), "--revision needs a class, not an App; give --style"),
        (("x", "--style", "app", "--with", "tools,tasks"), "--with tasks needs a class, not an App; give --style"),
        (("x", "--style", "app", "--with", "logging"), "--with logging needs a class"),
        ((), "the project needs a name; as in: mcp-bindgen scaffold server weather"),
    ]:
        done = inside("scaffold", "server", *words, "--out", tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert not list(tmp_path.iterdir())


def test_a_contract_that_a_revision_does_not_allow_is_refused(tmp_path: Path) -> None:
    contract = tmp_path / "c.json"
    tool = {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}}
    contract.write_text(json.dumps({"tools": [tool]}), "utf-8")
    words = ("scaffold", "server", "x", "--contract", contract, "--out", tmp_path, "--revision")
    done = inside(*words, "2025-11-25", code=2)
    assert "c.json#/tools/0/outputSchema/type: MCP 2025-11-25 does not allow it" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]
    assert inside(*words, "2026-07-28").returncode == 0


def test_a_failed_write_leaves_no_project_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, real = layout(plan(names_of("weather"), "server")), Path.replace

    def failing(path: Path, target: Path) -> Path:
        if target.name == list(written)[-1].rpartition("/")[2]:
            assert (tmp_path / "weather" / "src" / "weather" / "server.py").exists()
            raise OSError(28, "No space left on device")
        return real(path, target)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(BadInput):
        write_new(tmp_path / "weather", written)
    assert not list(tmp_path.iterdir())


# --- capabilities -------------------------------------------------------------------------------------------------


def test_features_follow_from_the_protocol() -> None:
    known = {name: features(lower(build(Store().effective(name))), "server") for name in Store().pins}
    assert list(known["2025-11-25"]) == ["completions", "logging", "prompts", "resources", "tasks", "tools"]
    assert [method.name for method in known["2025-11-25"]["logging"].methods] == ["logging/setLevel"]
    assert known["2026-07-28"]["logging"].methods == ()
    assert next(iter(known["2024-11-05"])) == "completion"
    assert [method.name for method in known["2025-11-25"]["resources"].methods] == [
        *(f"resources/{name}" for name in ("list", "templates/list", "read", "subscribe", "unsubscribe"))
    ]
    client = features(lower(build(Store().effective("2025-06-18"))), "client")
    assert list(client) == ["elicitation", "roots", "sampling"]


def test_capability_names_may_be_singular_or_plural_in_any_case() -> None:
    protocols = [lower(build(Store().effective(name))) for name in ("2024-11-05", "2025-11-25")]
    chosen = choose(protocols, "server", ("Tool", "completions"))
    names = {revision: [one.name for one in found] for revision, (found, _) in chosen.items()}
    assert names == {"2024-11-05": ["tools", "completion"], "2025-11-25": ["tools", "completions"]}


# --- questions ----------------------------------------------------------------------------------------------------


def interviewed(folder: Path, answers: dict[bytes, bytes], *options: object) -> bytes:
    """Answer each question of `scaffold server` once at a terminal; return the output."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.execv(COMMAND, [str(COMMAND), "scaffold", "server", *map(str, options)])
    seen = b""
    while select.select([terminal], [], [], 30)[0]:
        try:
            seen += os.read(terminal, 4096)
        except OSError:  # the command has ended
            break
        for question in [question for question in answers if question in seen]:
            os.write(terminal, answers.pop(question))
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, seen.decode()
    assert not answers, seen.decode()
    return seen


def test_scaffold_asks_questions_at_a_terminal(tmp_path: Path) -> None:
    answers = {b"Name": b"class\nsky\n", b"Style": b"function\nclass\n", b"Offers": b"tools,prompt\n"}
    answers |= dict.fromkeys((b"Revisions", b"Transports"), b"\n")
    seen = interviewed(tmp_path, answers)
    assert b"a word of Python's" in seen
    assert b"'function' is no style; known: app, class" in seen
    assert b"Tokens" not in seen  # stdio has no tokens
    assert "async def get_prompt" in (tmp_path / "sky" / "src" / "sky" / "server.py").read_text("utf-8")


@pytest.mark.full
def test_scaffold_does_not_ask_for_revisions_of_an_app(tmp_path: Path) -> None:
    answers = {b"Name": b"sky\n", b"Style": b"\n", b"Offers": b"tasks\nresources\n", b"Transports": b"stdio,http\n"}
    seen = interviewed(tmp_path, answers | {b"Tokens of an authorization server": b"\n"})
    assert b"Revisions" not in seen
    assert not (tmp_path / "sky" / "src" / "sky" / "protection.py").exists()
    assert b"--with tasks needs a class" in seen
    assert '@app.resource("memo://welcome"' in (tmp_path / "sky" / "src" / "sky" / "server.py").read_text("utf-8")


SCOPES_STATED = (("--contract", "scoped.yaml"), b"no\n\n", True)  # the contract determines the scopes
PROTECTION = [((), b"perhaps\nYes\n", True), SCOPES_STATED, (("--auth",), None, True)]


@pytest.mark.full
@pytest.mark.parametrize(("options", "said", "is_protected"), cases(PROTECTION, quick=[SCOPES_STATED]))
def test_scaffold_asks_about_authorization_over_http(
    tmp_path: Path, options: tuple[str, ...], said: bytes | None, is_protected: bool
) -> None:
    scoped = "tools:\n  - {name: wipe, inputSchema: {type: object}, x-mcp-scopes: [disk:write]}\n"
    (tmp_path / "scoped.yaml").write_text("serverInfo: {name: disk, version: 1.0.0}\n" + scoped, "utf-8")
    answers = {b"Name": b"sky\n"}
    if "--contract" in options:
        answers[b"Revisions"] = b"\n"
    else:
        answers |= {b"Style": b"app\n", b"Offers": b"tools\n"}
    if said is not None:
        answers |= {b"Transports": b"stdio,http\n", b"Tokens of an authorization server": said}
    seen = interviewed(tmp_path, answers, *options)
    assert (b"'perhaps' is neither yes nor no" in seen) == (said is not None and b"perhaps" in said)
    assert (b"the contract states scopes" in seen) == ("--contract" in options)
    assert (tmp_path / "sky" / "src" / "sky" / "protection.py").exists() == is_protected


# --- project metadata ---------------------------------------------------------------------------------------------


def test_updating_a_project_changes_only_its_own_table(tmp_path: Path) -> None:
    scaffolded("server", "weather", "--out", tmp_path)
    file = tmp_path / "weather" / "pyproject.toml"
    mine = file.read_text("utf-8").replace("[tool.ruff]", "# mine\r\n[tool.mine]\r\nx = 1  # x\r\n\r\n[tool.ruff]")
    file.write_text(mine, "utf-8", newline="")
    project = Project.read(tmp_path / "weather")
    written = replace(project, revisions=("2026-07-28",), transports=("stdio", "http")).written(mine)
    assert written == mine.replace('["2025-11-25"]', '["2026-07-28"]').replace('["stdio"]', '["stdio", "http"]')
    assert project.written(written) == mine


TABLE = '[tool.mcp-bindgen]\nkind = "server"\n'


def test_a_folder_without_a_valid_project_table_is_refused(tmp_path: Path) -> None:
    for text, said in [
        ("", "has no [tool.mcp-bindgen]"),
        ("[tool]\nmcp-bindgen = 1", "has no [tool.mcp-bindgen]"),
        ("[tool.mcp-bindgen]", "needs 'kind'"),
        (f'{TABLE}package = "a-b"', "needs 'package'"),
        (f'{TABLE}package = "a"\nrevisions = []', "needs 'revisions'"),
        (f'{TABLE}package = "a"\nrevisions = ["x"]\ncontract = "../x"', "needs 'contract'"),
        ("[", "is not TOML"),
    ]:
        (tmp_path / "pyproject.toml").write_text(text, "utf-8")
        with pytest.raises(BadInput) as caught:
            Project.read(tmp_path)
        assert said in str(caught.value)
        assert caught.value.fix
        with pytest.raises(BadInput, match="so it is no project of ours"):
            Project.read(tmp_path / "nothing")
