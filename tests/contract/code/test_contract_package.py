"""The generated package of a contract: its content, length and types, and the check of a project against it."""

from __future__ import annotations

import importlib
import json
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.contract.code.check import check_contract
from mcp_bindgen.contract.code.package import contract_class, contract_files
from mcp_bindgen.contract.code.regeneration import generate_contract
from mcp_bindgen.contract.document import contract_of
from mcp_bindgen.emit.python import naming
from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.scaffold.ownership import state
from mcp_bindgen.spec import BadInput, Store
from tests.harness.commands import lint, save
from tests.harness.shared import filled
from tests.harness.small_schemas import record

REVISIONS = list(Store().pins)
NEWEST = "2025-11-25"

TEXT = {"type": "string"}
FORECAST: dict[str, Any] = {
    "name": "get-forecast",
    "description": "The weather of the next days.",
    "inputSchema": record(
        "city",
        city={"type": "string", "description": "Where."},
        days={"type": "integer", "minimum": 1, "default": 3},
        unit={"enum": ["C", "F"]},
    ),
    "outputSchema": record("days", days={"type": "array", "items": TEXT}),
}
WARN: dict[str, Any] = {"name": "warn", "description": 'Warns "everybody".', "inputSchema": record("text", text=TEXT)}
PING: dict[str, Any] = {"name": "ping", "inputSchema": {"type": "object"}}
TOOLS = {"serverInfo": {"name": "weather", "version": "1.0.0"}, "tools": [FORECAST, WARN, PING]}
REPORTED = [{"name": "city", "required": True}, {"name": "style", "enum": ["short", "long"]}]
WHOLE: dict[str, Any] = {
    **TOOLS,
    "instructions": "Ask for one city at a time.",
    "prompts": [{"name": "hello", "description": "Says hello."}, {"name": "report", "arguments": REPORTED}],
    "resources": [{"uri": "file:///readme.md", "name": "readme", "mimeType": "text/markdown"}],
    "resourceTemplates": [{"uriTemplate": "weather://{city}/{day}", "name": "day", "description": "One day."}],
}

SERVER = """
from __future__ import annotations

from .contract import Content, Context, Prompted, Read, WeatherContract, models


class Weather(WeatherContract):
    async def get_forecast(self, arguments: models.GetForecastInput, ctx: Context) -> models.GetForecastOutput:
        return models.GetForecastOutput(days=[f"{arguments.city} {arguments.unit}"] * arguments.days)

    async def warn(self, arguments: models.WarnInput, ctx: Context) -> Content:
        return f"!! {arguments.text}"

    async def ping(self, arguments: models.PingInput, ctx: Context) -> Content:
        return ""

    async def prompt_hello(self, ctx: Context) -> Prompted:
        return "hello"

    async def prompt_report(self, arguments: models.ReportArguments, ctx: Context) -> Prompted:
        return f"{arguments.city} {arguments.style}"

    async def read_readme(self, ctx: Context) -> Read:
        return "# Weather"

    async def read_day(self, arguments: models.DayVariables, ctx: Context) -> Read:
        return f"{arguments.city} {arguments.day}"
"""


def protocols(*revisions: str) -> list[Protocol]:
    return [build(Store().effective(revision)) for revision in revisions]


def package(document: dict[str, Any], *revisions: str) -> dict[str, str]:
    return contract_files(contract_of(document), protocols(*(revisions or [NEWEST])), "weather", "contract.json")


def write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8", newline="\n")


def project(folder: Path, document: Any = WHOLE, server: str = SERVER, revisions: tuple[str, ...] = (NEWEST,)) -> Path:
    """Write a project with a contract; `server.py` belongs to the user."""
    source = folder / "src" / "weather"
    source.mkdir(parents=True)
    save(folder / "contract.json", document)
    named = ", ".join(f'"{revision}"' for revision in revisions)
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "weather"\nversion = "1"\n\n[tool.mcp-bindgen]\nkind = "server"\npackage = "weather"\n'
        f'revisions = [{named}]\ncontract = "contract.json"\n'
    )
    (source / "__init__.py").touch()
    (source / "server.py").write_text(textwrap.dedent(server).lstrip(), "utf-8")
    generate_contract(folder)
    return folder


# --- generated code -------------------------------------------------------------------------------------------


def test_a_package_reads_as_if_written_by_hand() -> None:
    assert package({"tools": [FORECAST]})["base.py"].split("\n", 4)[4] == textwrap.dedent(
        '''\
        """What the server `weather` offers: a method for each tool, prompt and resource."""

        from abc import abstractmethod
        from typing import TypeAlias

        from mcp_bindgen import v2025_11_25
        from mcp_bindgen.app import Catalog, Contract, tool

        from . import models

        Context: TypeAlias = v2025_11_25.Context
        CallToolResult: TypeAlias = v2025_11_25.types.CallToolResult


        class WeatherContract(Contract):
            """What `weather` offers. Subclass it and answer what is abstract; `run` serves an object of it."""

            catalog = Catalog.beside(__file__)
            revisions = (v2025_11_25,)

            @tool("get-forecast", models.GetForecastInput, models.GetForecastOutput)
            @abstractmethod
            async def get_forecast(
                self, arguments: models.GetForecastInput, ctx: Context
            ) -> models.GetForecastOutput | CallToolResult:
                """The weather of the next days."""
        '''
    )


@pytest.mark.full
def test_three_tools_need_under_eighty_lines_besides_the_models() -> None:
    for revisions in ([NEWEST], REVISIONS):
        files = package(TOOLS, *revisions)
        assert sum(len(files[name].splitlines()) for name in ("base.py", "__init__.py")) < 80


def test_the_generated_contract_json_keeps_all_entries_verbatim() -> None:
    document = {**WHOLE, "tools": [{**PING, "_meta": {"z": 1, "a": None}, "x-own": [1.0, 2**53 + 1]}]}
    written = json.loads(package(document)["contract.json"])
    assert next(iter(written)) == "generated"
    assert json.dumps({name: value for name, value in written.items() if name != "generated"}) == json.dumps(document)


@pytest.mark.full
def test_type_aliases_are_generated_only_if_used() -> None:
    def aliases(document: dict[str, Any]) -> set[str]:
        return {*re.findall(r"^(\w+): TypeAlias = ", package(document)["base.py"], re.MULTILINE)}

    assert aliases({}) == set()
    assert aliases({"tools": [PING]}) == {"Context", "CallToolResult", "Content"}
    assert aliases({"prompts": WHOLE["prompts"]}) == {"Context", "Prompted"}
    assert aliases({"resources": WHOLE["resources"]}) == {"Context", "Read"}
    assert aliases({"resourceTemplates": WHOLE["resourceTemplates"]}) == {"Context", "Read"}


@pytest.mark.full
def test_a_package_uses_the_types_of_its_revision() -> None:
    old, new = package(WHOLE, "2024-11-05")["base.py"], package(WHOLE, NEWEST)["base.py"]
    assert "Content: TypeAlias = str | Sequence[v2024_11_05.types.CallToolResultContent] | CallToolResult" in old
    assert "Content: TypeAlias = str | Sequence[v2025_11_25.types.ContentBlock] | CallToolResult" in new


def test_the_class_is_named_after_the_package() -> None:
    names = {"weather": "WeatherContract", "weather_server": "WeatherServerContract", "größe": "GrößeContract"}
    for name, class_name in {**names, "_3d": "Entry3dContract"}.items():
        assert contract_class(name) == class_name
        assert class_name.isidentifier()


def write_packages(folder: Path) -> None:
    """Write packages for each revision, for all revisions and for each kind of entry, most of them with a server."""
    for revisions in [*([revision] for revision in REVISIONS), REVISIONS]:
        place = folder / (naming.package(revisions[0]) if len(revisions) == 1 else "every")
        write(place / "contract", package(WHOLE, *revisions))
        write(place, {"__init__.py": "", "server.py": SERVER})
    for member in ("tools", "prompts", "resources", "resourceTemplates", "serverInfo"):
        write(folder / f"only_{member.lower()}", package({member: WHOLE[member]}))


@pytest.fixture
def packages(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the packages, from which tests can import them."""
    folder = filled(tmp_path_factory, write_packages)
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.mark.full
def test_every_package_passes_ruff(packages: Path) -> None:
    lint(packages)


@pytest.mark.full
def test_every_package_provides_servers_for_its_revisions(packages: Path) -> None:
    for name in [*map(naming.package, REVISIONS), "every"]:
        server = importlib.import_module(f"{name}.server").Weather()
        revisions = REVISIONS if name == "every" else [name[1:].replace("_", "-")]
        assert [one.name for one in server.served().revisions()] == revisions


# --- generate and check ---------------------------------------------------------------------------------------


def problems(folder: Path) -> list[str]:
    """Return file, line, message and fix of each finding."""
    found = [(one.place.file.removeprefix(f"{folder}/"), one) for one in check_contract(folder)]
    return [f"{file}:{one.place.line}: {one.message}. {one.fix}".strip() for file, one in found]


@pytest.mark.full
def test_the_contract_check_accepts_compatible_method_signatures(tmp_path: Path) -> None:
    server = """
        from typing import TYPE_CHECKING, Any
        from collections.abc import Awaitable
        from mcp_bindgen.v2025_11_25 import types
        from .contract import WeatherContract, models
        if TYPE_CHECKING:
            from .nowhere import Anything

        class Base(WeatherContract):
            def warn(self, arguments, ctx):
                return "x"

        class Weather(Base):
            def get_forecast(self, a: models.GetForecastInput | None, b: object) -> types.CallToolResult: ...
            async def ping(self, *arguments: Any, **more: Any) -> list[types.TextContent]: ...
            def prompt_hello(self, ctx: "Anything") -> "Anything": ...
            def prompt_report(self, arguments, ctx, more: int = 0) -> Awaitable[str]: ...
            async def read_readme(self, ctx) -> bytes: ...
            async def read_day(self, arguments, ctx) -> str | bytes: ...
    """
    assert problems(project(tmp_path / "p", server=server)) == []


MISSED, PROMISED = "get_forecast, for the tool 'get-forecast'", "models.GetForecastOutput | CallToolResult"
BREAKS: list[list[tuple[str, str, int, str]]] = [
    [
        ("async def ping", "async def pong", 6, "Weather misses ping, for the tool 'ping'"),
        (
            "-> models.GetForecastOutput",
            "-> str",
            7,
            f"Weather.get_forecast returns str; the contract promises {PROMISED}",
        ),
        ("WarnInput, ctx: Context)", "WarnInput)", 10, "Weather.warn cannot be called with (self, arguments, ctx)"),
        ('return "hello"', 'yield "hello"', 16, "Weather.prompt_hello yields; the contract promises one answer"),
    ],
    [
        ("def get_forecast", "def get_forecasts", 6, f"Weather misses {MISSED}. Rename get_forecasts, if it is meant."),
        ("WarnInput, ctx", "PingInput, ctx", 10, "Weather.warn takes something else; the contract gives it WarnInput"),
    ],
    [("Weather(WeatherContract)", "Weather", 0, "no module of the package has a subclass of WeatherContract")],
    [("import Content", "import Contents", 3, 'Module "weather.contract" has no attribute "Contents"')],
    [("class Weather", "clas Weather", 1, "is not Python: invalid syntax at line 6")],
]


@pytest.mark.full
@pytest.mark.parametrize("breaks", BREAKS)
def test_all_contract_violations_are_reported_with_their_locations(
    tmp_path: Path, breaks: list[tuple[str, str, int, str]]
) -> None:
    server = SERVER
    for old, new, _, _ in breaks:
        assert old in server
        server = server.replace(old, new)
    found = problems(project(tmp_path / "p", server=server))
    assert len(found) == len(breaks)
    for _, _, line, said in breaks:
        place = "src/weather/__init__.py" if line == 0 else "src/weather/server.py"
        assert any(problem.startswith(f"{place}:{line or 1}: {said}") for problem in found), found


@pytest.mark.full
def test_generated_files_must_be_current(tmp_path: Path) -> None:
    """There is no finding if they are, and the class implements the contract."""
    folder = project(tmp_path / "p")
    generated = folder / "src" / "weather" / "contract"
    (generated / "base.py").write_text((generated / "base.py").read_text() + "\n# mine\n")
    save(folder / "contract.json", {**WHOLE, "instructions": "Others."})
    assert problems(folder) == [
        "src/weather/contract/base.py:1: base.py was edited. Put your changes elsewhere and run: "
        "mcp-bindgen contract generate --force",
        "src/weather/contract/contract.json:1: contract.json is out of date with contract.json. "
        "Run: mcp-bindgen contract generate",
    ]
    report = generate_contract(folder)
    assert (report.written, report.kept) == (("contract.json",), ("base.py",))
    assert generate_contract(folder, force=True).moved == (("base.py", "base.py.edited"),)
    assert problems(folder) == []
    (generated / "models.py").unlink()
    assert problems(folder)[0] == (
        "src/weather/contract/models.py:1: models.py is missing. Run: mcp-bindgen contract generate"
    )


@pytest.mark.full
def test_a_tool_renamed_in_a_contract_gives_one_finding_with_a_rename_hint(tmp_path: Path) -> None:
    folder = project(tmp_path / "p")
    save(folder / "contract.json", {**WHOLE, "tools": [FORECAST, {**WARN, "name": "alert"}, PING]})
    generate_contract(folder)
    said = "Weather misses alert, for the tool 'alert'. Rename warn, if it is meant."
    assert problems(folder) == [f"src/weather/server.py:6: {said}"], "there is nothing else that it could be"


@pytest.mark.full
def test_generating_twice_changes_nothing(tmp_path: Path) -> None:
    folder = project(tmp_path / "p")
    assert generate_contract(folder).written == ()
    assert {state(path) for path in (folder / "src/weather/contract").iterdir()} == {"untouched"}


def test_generate_and_check_refuse_a_project_without_a_contract(tmp_path: Path) -> None:
    folder = project(tmp_path / "p")
    text = (folder / "pyproject.toml").read_text().replace('contract = "contract.json"\n', "")
    (folder / "pyproject.toml").write_text(text)
    for work in (generate_contract, check_contract):
        with pytest.raises(BadInput, match="has no contract"):
            work(folder)
