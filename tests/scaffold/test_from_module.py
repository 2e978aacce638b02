"""A server that is scaffolded from annotated functions calls them: from a file, and from an installed package."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.commands import bindgen, execute, inside
from tests.harness.forks import PYTHON
from tests.harness.shared import filled

FUNCTIONS = '''
"""What a team has already."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from mcp_bindgen.app import Context, ToolError


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Place:
    city: str
    at: tuple[float, float] = (0.0, 0.0)


class Trip(BaseModel):
    stops: list[Place]
    level: Level = Level.LOW


async def plan(stops: list[Place], level: Level = Level.HIGH, how: Literal["train", "ship"] = "train") -> Trip:
    """Plan a trip."""
    assert all(isinstance(stop, Place) for stop in stops) and isinstance(level, Level)
    return Trip(stops=stops, level=level)


def count(words: str) -> int:
    """Count words."""
    return len(words.split())


async def greet(name: str, ctx: Context) -> str:
    """Greet somebody."""
    await ctx.info("greeting")
    if not name:
        raise ToolError("whom?")
    return f"hello {name}"


def wipe() -> None:
    """Nobody calls this by accident."""
    raise SystemExit("called")
'''

CALLS = """
import pytest
from mcp_bindgen.testing import connected
from mcp_bindgen.v2025_11_25 import Client
from trips.server import Trips

pytestmark = pytest.mark.anyio


async def test_calls():
    async with connected(Client(), Trips()) as client:
        plan = await client.call_tool("plan", {"stops": [{"city": "Oslo", "at": [59.9, 10.7]}, {"city": "Bergen"}]})
        assert plan.structured_content == {
            "stops": [{"city": "Oslo", "at": [59.9, 10.7]}, {"city": "Bergen", "at": [0.0, 0.0]}], "level": 2
        }
        assert (await client.call_tool("count", {"words": "a b c"})).structured_content == {"result": 3}
        assert (await client.call_tool("greet", {"name": "Ada"})).content[0].text == "hello Ada"
        failed = await client.call_tool("greet", {"name": ""})
        assert (failed.is_error, failed.content[0].text) == (True, "whom?")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a working folder; afterwards remove its modules from `sys.modules`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "tools", raising=False)  # another test may have imported a module of this name
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def write_trips(folder: Path) -> None:
    """Scaffold a server from the functions of a file, in new processes because these import the file."""
    (folder / "tools.py").write_text(FUNCTIONS, "utf-8")
    written = bindgen("contract", "from-module", "tools", "--out", "trips.yaml", cwd=folder)
    assert "scaffold server NAME --contract trips.yaml --from-module tools" in written.stdout
    words = ("--contract", "trips.yaml", "--from-module", "tools")
    done = bindgen("scaffold", "server", "trips", *words, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.full
def test_a_server_calls_the_functions_of_a_file(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The generated tests check the functions against the contract without calling them."""
    folder = filled(tmp_path_factory, write_trips)
    monkeypatch.chdir(folder)
    project = folder / "trips"
    assert (project / "src" / "trips" / "tools.py").read_text("utf-8") == FUNCTIONS
    server = (project / "src" / "trips" / "server.py").read_text("utf-8")
    assert "return await delegate(tools.plan, arguments, ctx, models." in server
    (project / "tests" / "test_calls.py").write_text(CALLS, "utf-8")
    assert "7 passed" in execute(PYTHON, "-m", "pytest", "-q", cwd=project, code=0).stdout
    assert inside("contract", "check", project).stdout == "The project keeps to its contract.\n"
    checked = inside("contract", "from-module", "tools", "--out", "trips.yaml", "--check")
    assert (checked.returncode, checked.stdout) == (0, "trips.yaml is up to date.\n")


@pytest.mark.full
def test_a_server_calls_the_functions_of_an_installed_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module is imported under another name if the project has a module of that name."""
    package = folder / "site" / "acme"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "models.py").write_text("def double(number: int) -> int:\n    return 2 * number\n", "utf-8")
    monkeypatch.syspath_prepend(folder / "site")
    assert inside("scaffold", "server", "sums", "--from-module", "acme.models").returncode == 0
    server = (folder / "sums" / "src" / "sums" / "server.py").read_text("utf-8")
    assert "from acme import models as functions\n" in server
    assert "delegate(functions.double, arguments, ctx, models." in server
    assert json.loads((folder / "sums" / "contract.json").read_text("utf-8"))["tools"][0]["name"] == "double"
    where = os.pathsep.join(filter(None, [str(folder / "site"), os.environ.get("PYTHONPATH")]))
    execute(PYTHON, "-m", "pytest", "-q", cwd=folder / "sums", PYTHONPATH=where, code=0)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("nowhere", "there is no module 'nowhere' in ."),
        ("acme.tools", "acme is not installed; install its package here, as in: pip install -e ."),
        ("two", "two.py: imports one, which is beside it; install a package of both"),
    ],
)
def test_a_module_that_a_project_could_not_import_is_refused(folder: Path, module: str, said: str) -> None:
    (folder / "acme").mkdir()
    (folder / "acme" / "tools.py").write_text("def f() -> int: return 1\n", "utf-8")
    (folder / "one.py").write_text("X = 1\n", "utf-8")
    (folder / "two.py").write_text("import one\ndef f() -> int: return 1\n", "utf-8")
    done = inside("scaffold", "server", "x", "--from-module", module)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr
    assert not (folder / "x").exists()
