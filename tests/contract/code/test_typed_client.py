"""Typed clients: the code generated for a contract, its type check, and the requests that a server receives."""

from __future__ import annotations

import ast
import importlib
import json
import os
import shlex
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings

from mcp_bindgen import app
from mcp_bindgen.app.contract import specs
from mcp_bindgen.contract.code.package import contract_files
from mcp_bindgen.contract.code.typed_client import client_class, client_files
from mcp_bindgen.contract.document import contract_of
from mcp_bindgen.emit.python import naming
from mcp_bindgen.ir import build
from mcp_bindgen.runtime import Client
from mcp_bindgen.runtime.session.endpoint import serve
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.spec import BadInput, Store
from tests.contract.code.test_contract_package import (
    FORECAST,
    NEWEST,
    PING,
    REVISIONS,
    WHOLE,
    package,
    protocols,
    write,
)
from tests.harness import hostile_contract as hostile
from tests.harness.commands import ROOT, SOURCE_ROOTS, execute, inside, lint, save, snapshot
from tests.harness.contract_strategies import inputs
from tests.harness.effort import examples
from tests.harness.forks import PYTHON
from tests.harness.raw_client import LISTS
from tests.harness.shared import filled
from tests.harness.small_schemas import record
from tests.harness.type_checkers import strict_cache

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
NULLABLE: dict[str, Any] = {
    "name": "note",
    "inputSchema": record(
        "text a-b",
        text={"type": ["string", "null"], "description": "What to note."},
        title={"type": ["string", "null"]},
        self={"type": "boolean", "default": True},
        app={"type": "number", "default": 0.5},
        tags={"type": "array", "items": record(name=TEXT)},
        **{"a-b": TEXT},
    ),
}
COUNT: dict[str, Any] = {
    "name": "count",
    "inputSchema": {"type": "object", "additionalProperties": {"type": ["integer", "null"]}},
    "outputSchema": {"type": "object", "additionalProperties": NUMBER},
}
FIND: dict[str, Any] = {
    "name": "find",
    "inputSchema": {"type": "object", "oneOf": [record("id", id=NUMBER), record("name", name=TEXT)]},
    "outputSchema": {"type": "object", "anyOf": [record("found", found={"const": True}), record("why", why=TEXT)]},
}
DOCUMENT = {**WHOLE, "tools": [*WHOLE["tools"], NULLABLE, COUNT, FIND]}

SERVER = """
import json
from .contract import WeatherContract, models


class Weather(WeatherContract):
    async def get_forecast(self, arguments, ctx):
        return models.GetForecastOutput(days=[str(arguments.city)] * int(arguments.days))

    async def warn(self, arguments, ctx):
        raise app.ToolError(arguments.text)

    async def ping(self, arguments, ctx):
        return json.dumps(ctx.params.arguments)

    async def note(self, arguments, ctx):
        return json.dumps(ctx.params.arguments)

    async def count(self, arguments, ctx):
        return models.CountOutput(**{name: len(json.dumps(number)) for name, number in ctx.params.arguments.items()})

    async def find(self, arguments, ctx):
        return models.FindOutputOption2(why=type(arguments).__name__)

    async def prompt_hello(self, ctx):
        return "hello"

    async def prompt_report(self, arguments, ctx):
        return json.dumps(ctx.params.arguments)

    async def read_readme(self, ctx):
        return "# Weather"

    async def read_day(self, arguments, ctx):
        return ctx.params.uri


from mcp_bindgen import app
"""


def client(document: dict[str, Any], revision: str = NEWEST, name: str = "weather") -> str:
    """Return the source of a typed client's module."""
    protocol = build(Store().effective(revision))
    return client_files(contract_of(document), protocol, client_class(name), f"{name}.py", "a test")[f"{name}.py"]


def test_a_client_class_is_named_after_its_module() -> None:
    for module, name in [
        ("everything", "EverythingClient"),
        ("everything_client", "EverythingClient"),
        ("client", "ClientClient"),
    ]:
        assert client_class(module) == name


def signature(text: str, method: str) -> str:
    """Return the signature of a method in a module, with the return annotation."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.AsyncFunctionDef) and node.name == method:
            assert node.returns is not None
            return f"({ast.unparse(node.args)}) -> {ast.unparse(node.returns)}"
    raise AssertionError(f"no method {method}")


def write_clients(folder: Path) -> None:
    """Write a client and a server of the same contract for each revision."""
    for revision in REVISIONS:
        place = folder / f"c{naming.package(revision)}"
        write(place / "contract", package(DOCUMENT, revision))
        write(place, {"__init__.py": "", "server.py": SERVER, "weather.py": client(DOCUMENT, revision)})


@pytest.fixture
def clients(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the clients and servers, from which tests can import them."""
    folder = filled(tmp_path_factory, write_clients)
    monkeypatch.syspath_prepend(folder)
    return folder


@asynccontextmanager
async def connected(revision: str) -> AsyncGenerator[Any]:
    """Yield the typed client of a revision, connected to the server of the same contract."""
    name = f"c{naming.package(revision)}"
    kind = importlib.import_module(f"{name}.weather").WeatherClient
    server = importlib.import_module(f"{name}.server").Weather()
    ours, theirs = pair()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: serve(theirs, server))
        async with kind.connect(ours) as weather:
            assert isinstance(weather, app.ContractClient)
            assert isinstance(weather.client, Client)
            yield weather
        await theirs.close()


# --- generated code -------------------------------------------------------------------------------------------


def test_a_method_has_the_arguments_of_its_tool() -> None:
    text = client({"tools": [FORECAST, NULLABLE, PING]})
    assert signature(text, "get_forecast") == (
        "(self, *, city: str, days: int | None=None, unit: Literal['C', 'F'] | None=None) -> GetForecastOutput"
    )
    assert signature(text, "note") == (
        "(self, *, text: str | None, a_b: str, title: str | None | app.Absent=app.ABSENT, "
        "self__: bool | None=None, app_: float | None=None, tags: list[NoteInputTags] | None=None) "
        "-> list[types.ContentBlock]"
    ).replace("self__", "self_")
    assert signature(client({"tools": [COUNT]}), "count") == "(self, **more: int | None) -> CountOutput"
    assert signature(text, "ping") == "(self) -> list[types.ContentBlock]"


CHOICES = {
    "one": {"enum": [1, 2]},
    "two": {"const": 5},
    "mixed": {"enum": [1, "a", True]},
    "or_null": {"enum": [1, None]},
    "float": {"enum": [1.5, 2]},
    "huge": {"enum": [2**64, 1]},
    "pair": {"type": "array", "prefixItems": [TEXT, {"type": "number"}], "minItems": 2, "maxItems": 2},
    "items": {"type": "array", "items": {"enum": [1, 2]}},
    "triple": {"type": "array", "prefixItems": [NUMBER] * 3, "minItems": 3, "items": False},
    "some": {"type": "array", "prefixItems": [TEXT], "items": False},
    **dict.fromkeys(("json", "schema", "model_name"), TEXT),
}
NARROW: dict[str, Any] = {"name": "narrow", "inputSchema": record("one pair", **CHOICES)}


def test_enum_and_tuple_arguments_get_precise_types_and_wire_names() -> None:
    assert signature(client({"tools": [NARROW]}), "narrow").partition(" -> ")[0] == (
        "(self, *, one: Literal[1, 2], pair: tuple[str, float], two: Literal[5] | None=None, "
        "mixed: Literal[1, 'a', True] | None=None, or_null: Literal[1] | None | app.Absent=app.ABSENT, "
        "float: float | None=None, huge: int | None=None, items: list[Literal[1, 2]] | None=None, "
        "triple: tuple[int, int, int] | None=None, some: list[str] | None=None, "
        "json: str | None=None, schema: str | None=None, model_name: str | None=None)"
    )


def test_documented_constants_become_literals_with_descriptions() -> None:
    choice = {"oneOf": [{"const": 1, "description": "One."}, {"const": 2, "description": "Two."}]}
    tool = {"name": "pick", "inputSchema": {"type": "object", "properties": {"choice": choice}, "required": ["choice"]}}
    text = client({"tools": [tool]})
    assert "choice: Literal[1, 2]" in signature(text, "pick")
    assert "- `1`: One. - `2`: Two." in " ".join(text.split())


def test_a_task_only_tool_is_documented_with_the_way_to_call_it() -> None:
    document = {"tools": [{**PING, "execution": {"taskSupport": "required"}}, FORECAST]}
    for revision, how in (("2025-11-25", "`client.call_tool(..., task=...)`"), ("2026-07-28", "the extension `tasks`")):
        text = client(document, revision)
        assert text.count("The server runs this tool as a task only") == 1
        assert text.count(how) == 1


def test_a_module_has_only_the_models_that_its_methods_name() -> None:
    tree = ast.parse(client({**WHOLE, "tools": [*WHOLE["tools"], NULLABLE]}))
    names = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    assert names == {"GetForecastOutput", "NoteInputTags", "WeatherClient"}


def test_descriptions_become_docstrings() -> None:
    tree = ast.parse(client(DOCUMENT))
    methods = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef)}
    assert ast.get_docstring(methods["get_forecast"]) == (
        "The weather of the next days.\n\nArgs:\n    city: Where.\n    days: (default of the server: 3)"
    )
    assert ast.get_docstring(methods["warn"]) == 'Warns "everybody".'
    assert ast.get_docstring(methods["ping"]) == "The tool `ping`."


@pytest.mark.full
def test_unstructured_results_have_the_content_type_of_the_revision() -> None:
    assert signature(client(DOCUMENT, "2024-11-05"), "warn").endswith("-> list[types.CallToolResultContent]")
    assert signature(client(DOCUMENT, "2024-11-05"), "get_forecast").endswith("-> list[types.CallToolResultContent]")
    assert signature(client(DOCUMENT, "2025-06-18"), "get_forecast").endswith("-> GetForecastOutput")


@pytest.mark.full
def test_a_client_class_with_a_name_in_use_is_refused() -> None:
    protocol = build(Store().effective(NEWEST))
    for name in ("Client", "GetForecastOutput", "app"):
        with pytest.raises(BadInput, match="something else of the name"):
            client_files(contract_of(DOCUMENT), protocol, name, "weather.py", "a test")


@pytest.mark.full
def test_a_client_type_checks_under_mypy_strict(clients: Path, tmp_path: Path) -> None:
    """`test_types.py` checks the clients of all revisions with pyright."""
    roots = os.pathsep.join(str(ROOT / name) for name in SOURCE_ROOTS)
    options = ["--explicit-package-bases", "--strict", strict_cache(tmp_path / "cache")]
    newest = clients / f"c{naming.package(NEWEST)}" / "weather.py"
    execute(sys.executable, "-m", "mypy", *options, newest, cwd=clients, MYPYPATH=roots, code=0)


@pytest.mark.full
def test_every_client_passes_ruff(clients: Path) -> None:
    modules = [*clients.glob("*/weather.py"), *clients.glob("*/contract/*.py")]
    lint(*modules)


# --- requests to a server -------------------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_and_a_server_of_one_contract_work_together(clients: Path, revision: str) -> None:
    async with connected(revision) as weather:
        forecast = await weather.get_forecast(city="Bern", days=2)
        if revision < "2025-06-18":
            assert json.loads(forecast[0].text) == {"days": ["Bern", "Bern"]}
        else:
            assert forecast.days == ["Bern", "Bern"]
        with pytest.raises(app.ToolError, match="storm"):
            await weather.warn(text="storm")
        assert (await weather.ping())[0].text == "{}"
        assert (await weather.prompt_hello()).messages[0].content.text == "hello"
        for given_args in ({"city": "Bern", "style": "short"}, {"city": "Bern"}):
            report = await weather.prompt_report(**given_args)
            assert json.loads(report.messages[0].content.text) == given_args
        assert (await weather.read_readme()).contents[0].text == "# Weather"
        (day,) = (await weather.read_day(city="São Paulo", day="1/2")).contents
        assert day.text == "weather://S%C3%A3o%20Paulo/1%2F2"


async def test_omitted_arguments_are_not_sent_and_all_given_values_are(clients: Path) -> None:
    async with connected(NEWEST) as weather:
        module = importlib.import_module(type(weather).__module__)
        (few,) = await weather.note(text=None, a_b="x")
        assert json.loads(few.text) == {"text": None, "a-b": "x"}
        tags = [module.NoteInputTags(name="n")]
        (every,) = await weather.note(text="t", a_b="x", title=None, self_=False, app_=2, tags=tags)
        expected = {"text": "t", "a-b": "x", "title": None, "self": False, "app": 2, "tags": [{"name": "n"}]}
        assert json.loads(every.text) == expected
        assert (await weather.count(a=1, **{"b c": None})).model_dump() == {"a": 1, "b c": 4}
        assert (await weather.find(module.FindInputOption2(name="x"))).why == "FindInputOption2"


# --- the command ----------------------------------------------------------------------------------------------

MAIN = """
from mcp_bindgen.runtime import run
from served.server import Weather

run(Weather())
"""


@pytest.fixture
def live(tmp_path: Path) -> str:
    """Return a command that starts a server with the contract."""
    place = tmp_path / "served"
    write(place / "contract", package(DOCUMENT))
    write(place, {"__init__.py": "", "server.py": SERVER})
    write(tmp_path, {"main.py": MAIN})
    return shlex.join([PYTHON, str(tmp_path / "main.py")])


@pytest.mark.full
def test_a_client_is_generated_from_a_live_server(tmp_path: Path, live: str) -> None:
    out = tmp_path / "app" / "weather.py"
    out.parent.mkdir()
    done = inside("client", "--from", live, "--out", out, code=0)
    assert done.stdout.splitlines()[-1] == "WeatherClient: 6 tools, 2 prompts, 1 resource, 1 template, MCP 2026-07-28"
    assert out.read_text().startswith("# Generated by mcp-bindgen for MCP 2026-07-28. Do not edit: sha256 ")
    assert out.read_text().splitlines()[2] == "# From: weather 1.0.0"
    done = inside("client", "--from", live, "--out", out, "--check")
    assert (done.returncode, done.stdout) == (0, "Nothing changed.\n")


@pytest.mark.full
def test_a_client_is_generated_from_a_contract_file_and_from_its_copy(tmp_path: Path) -> None:
    saved = save(tmp_path / "contract.json", DOCUMENT)
    assert inside("client", "--from", saved, "--out", tmp_path / "one.py", "--name", "Weather").returncode == 0
    assert inside("client", "--from", tmp_path / "one.contract.json", "--out", tmp_path / "two.py").returncode == 0
    assert "class Weather(" in (tmp_path / "one.py").read_text()
    done = inside("client", "--from", tmp_path / "two.contract.json", "--out", tmp_path / "one.py", "--check")
    assert done.stdout == "Nothing changed.\n"


@pytest.mark.full
def test_the_regenerate_command_in_a_module_has_no_absolute_paths(
    tmp_path: Path, live: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert inside("client", "--from", live, "--out", tmp_path / "app" / "weather.py").returncode == 0
    (line,) = [line for line in Path("app/weather.py").read_text().splitlines() if "Regenerate with" in line]
    program = Path(sys.executable).name
    assert line == f"# Regenerate with: mcp-bindgen client --from '{program} main.py' --out app/weather.py"


def test_a_check_reports_changes_and_fails_on_breaking_changes(tmp_path: Path) -> None:
    saved = save(tmp_path / "contract.json", DOCUMENT)
    inside("client", "--from", saved, "--out", tmp_path / "weather.py")
    before = snapshot(tmp_path)
    save(saved, {**DOCUMENT, "tools": [*DOCUMENT["tools"], {**PING, "name": "pong"}]})
    done = inside("client", "--from", saved, "--out", tmp_path / "weather.py", "--check", code=0)
    assert "pong is new" in done.stdout
    save(saved, {**DOCUMENT, "tools": DOCUMENT["tools"][1:]})
    done = inside("client", "--from", saved, "--out", tmp_path / "weather.py", "--check", code=1)
    assert "get-forecast is gone" in done.stdout
    assert snapshot(tmp_path) | {"contract.json": b""} == before | {"contract.json": b""}


@pytest.mark.full
@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda text: text + "\n# mine\n", "was edited"),
        (lambda text: text.replace("# Generated by mcp-bindgen", "# Mine", 1), "was not generated by us"),
        (lambda text: "", "was not generated by us"),
    ],
)
def test_a_check_reports_an_edited_or_foreign_module(tmp_path: Path, edit: Any, said: str) -> None:
    saved = save(tmp_path / "contract.json", DOCUMENT)
    out = tmp_path / "weather.py"
    inside("client", "--from", saved, "--out", out)
    out.write_text(edit(out.read_text()))
    done = inside("client", "--from", saved, "--out", out, "--check", code=1)
    assert said in done.stdout
    assert done.stdout.splitlines()[-1] == "Nothing changed."


@pytest.mark.full
def test_edited_modules_are_left_or_moved_aside(tmp_path: Path) -> None:
    saved = save(tmp_path / "contract.json", DOCUMENT)
    out = tmp_path / "weather.py"
    inside("client", "--from", saved, "--out", out)
    out.write_text(out.read_text() + "\n# mine\n")
    assert "was edited, and was left" in inside("client", "--from", saved, "--out", out, code=1).stdout
    assert out.read_text().endswith("# mine\n")
    assert inside("client", "--from", saved, "--out", out, "--force").returncode == 0
    assert "# mine" not in out.read_text()
    assert (tmp_path / "weather.py.edited").read_text().endswith("# mine\n")


def test_bad_input_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, said in [
        (["--out", "weather.txt"], "is not the name of a module"),
        (["--out", "two-words.py"], "is not the name of a module"),
        (["--out", "weather.py", "--name", "a b"], "is not the name of a class"),
        (["--out", "weather.py", "--name", "Client"], "something else of the name"),
        (["--out", "weather.py", "--revision", "2020-01-01"], "2020-01-01"),
        (["--out", "weather.py", "--check"], "has no saved contract of ours beside it"),
        (["--out", "weather.py", "--check", "--force"], "--check writes nothing"),
        (["--out", "taken.py"], "was not generated by us"),
        (["--out", "taken.py", "--force"], "was not generated by us"),
        (["--out", "nowhere.json/weather.py"], "is a file, not a folder"),
    ]:
        monkeypatch.chdir(tmp_path)
        save(tmp_path / "contract.json", DOCUMENT)
        (tmp_path / "nowhere.json").write_text("{}")
        (tmp_path / "taken.py").write_text("MINE = 1\n")
        before = snapshot(tmp_path)
        done = inside("client", "--from", "contract.json", *words, code=2)
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert snapshot(tmp_path) == before


# --- hostile contracts ----------------------------------------------------------------------------------------


def evil_document(folder: Path) -> dict[str, Any]:
    """Return a part of the hostile contract; `test_hostile_contracts.py` uses all of it."""
    document = hostile.contract(folder / "marker")
    return {**document, "tools": document["tools"][::4]}


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a folder with a package and a client of the hostile contract."""
    folder = tmp_path_factory.mktemp("evil")
    contract, said = contract_of(evil_document(folder)), hostile.payloads(folder / "marker")
    write(folder / "evil_server" / "contract", contract_files(contract, protocols(*REVISIONS), "evil_server", said[0]))
    (newest,) = protocols(NEWEST)
    write(folder / "evil_client", client_files(contract, newest, "EvilClient", "evil.py", said[0], said[1]))
    write(folder / "evil_client", {"__init__.py": ""})
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.mark.full
def test_no_text_of_a_contract_becomes_code(evil: Path) -> None:
    for path in evil.rglob("*.py"):
        text = path.read_text("utf-8")
        assert all(char.isprintable() or char == "\n" for char in text), path
        nodes = list(ast.walk(ast.parse(text)))
        assert "__import__" not in {node.id for node in nodes if isinstance(node, ast.Name)}
        assert not [node for node in nodes if isinstance(node, ast.Raise | ast.Import | ast.JoinedStr)]
    base = importlib.import_module("evil_server.contract.base").EvilServerContract
    client = importlib.import_module("evil_client.evil").EvilClient
    assert base.__abstractmethods__ <= {*dir(client)}
    document = evil_document(evil)
    offered = [(spec.kind, spec.name) for spec in specs(base).values()]
    for kind in ("tool", "prompt"):
        assert sorted(name for one, name in offered if one == kind) == sorted(
            each["name"] for each in document[f"{kind}s"]
        )
    assert len(base.__abstractmethods__) == len(offered) == sum(len(document[member]) for member in LISTS.values())
    assert not (evil / "marker").exists()


@pytest.mark.full
def test_packages_of_a_hostile_contract_pass_ruff(evil: Path) -> None:
    lint(evil)


@pytest.mark.full
@given(taken=inputs(), given_=inputs())
@settings(max_examples=examples(5, 15), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_any_schema_gives_importable_modules(taken: dict[str, Any], given_: dict[str, Any]) -> None:
    document = {"tools": [{"name": "t", "inputSchema": taken, "outputSchema": given_}]}
    with suppress(BadInput):  # tests of contracts cover refused contracts
        texts = [client(document), package(document)["models.py"]]
        for text in texts:
            exec(compile(text, "generated", "exec"), {"__name__": "generated", "__file__": __file__})
