"""Third-party servers: export their contracts, generate typed clients that call them, and scaffold equal servers.

Three servers are npm packages (`tests/interop/package.json`, which `.ci/run` installs), two come from PyPI.
"""

from __future__ import annotations

import copy
import json
import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.scaffold.project import Project
from tests.harness.commands import Done, execute, inside, save
from tests.harness.effort import cases
from tests.harness.forks import PYTHON
from tests.harness.raw_client import LISTS, STATEFUL, STATELESS, exact, raw
from tests.harness.shared import filled
from tests.interop.processes import MODULES, needed, node

EVERYTHING = """
import sys
import anyio
import pytest
from everything import EverythingClient
from mcp_bindgen.app import ToolError
from mcp_bindgen.v2025_11_25 import types as mcp

async def main() -> None:
    async with EverythingClient.connect(sys.argv[2:]) as server:
        (echoed,) = await server.echo(message="Grüße 🌍")
        assert echoed == mcp.TextContent(text="Echo: Grüße 🌍")
        (added,) = await server.get_sum(a=2, b=3.5)
        assert isinstance(added, mcp.TextContent)
        assert added.text == "The sum of 2 and 3.5 is 5.5."
        weather = await server.get_structured_content(location="Chicago")
        assert (weather.temperature * 1, weather.conditions.split()[0], weather.humidity) == (36, "Light", 82)
        text, image, _ = await server.get_tiny_image()
        assert isinstance(text, mcp.TextContent) and isinstance(image, mcp.ImageContent)
        assert image.mime_type == "image/png"
        noted = await server.get_annotated_message(message_type="error", include_image=True)
        assert [block.type for block in noted] == ["text", "image"]
        links = await server.get_resource_links()
        assert len(links) == 1 + 3  # that is the default
        assert len(await server.get_resource_links(count=2)) == 1 + 2
        with pytest.raises(ToolError, match="maximum|10"):
            await server.get_resource_links(count=11)

        (message,) = (await server.prompt_args_prompt(city="Oslo")).messages
        assert message.content == mcp.TextContent(text="What's weather in Oslo?")
        (message,) = (await server.prompt_args_prompt(city="Oslo", state="Norway")).messages
        assert message.content == mcp.TextContent(text="What's weather in Oslo, Norway?")
        assert (await server.prompt_simple_prompt()).messages[0].role == "user"

        (document,) = (await server.read_features_md()).contents
        assert isinstance(document, mcp.TextResourceContents) and document.text.startswith("#")
        (dynamic,) = (await server.read_dynamic_text_resource(resource_id="7")).contents
        assert isinstance(dynamic, mcp.TextResourceContents) and dynamic.text.startswith("Resource 7:")

anyio.run(main)
"""

FILESYSTEM = """
import sys
from pathlib import Path
import anyio
import pytest
from filesystem import EditFileInputEdits, FilesystemClient
from mcp_bindgen.app import ToolError

async def main() -> None:
    folder = Path(sys.argv[1])
    poem = folder / "poem.txt"
    async with FilesystemClient.connect(sys.argv[2:]) as server:
        await server.write_file(path=str(poem), content="roses\\nare\\nblue\\n")
        assert poem.read_text() == "roses\\nare\\nblue\\n"
        assert (await server.read_text_file(path=str(poem), head=2)).content == "roses\\nare"
        assert (await server.read_text_file(path=str(poem), tail=2)).content == "blue\\n"
        edit = EditFileInputEdits(old_text="blue", new_text="red")
        assert "+red" in (await server.edit_file(path=str(poem), edits=[edit], dry_run=True)).content
        assert "red" not in poem.read_text()
        await server.edit_file(path=str(poem), edits=[edit])
        assert poem.read_text().endswith("red\\n")
        await server.move_file(source=str(poem), destination=str(folder / "verse.txt"))
        assert (await server.search_files(path=str(folder), pattern="*.txt")).content.endswith("verse.txt")
        listed = (await server.list_directory_with_sizes(path=str(folder), sort_by="size")).content
        assert "verse.txt" in listed
        both = await server.read_multiple_files(paths=[str(folder / "verse.txt"), str(folder / "missing")])
        assert "roses" in both.content and "ENOENT" in both.content
        with pytest.raises(ToolError, match="Access denied"):
            await server.read_text_file(path="/etc/passwd")

anyio.run(main)
"""

MEMORY = """
import sys
import anyio
from memory import CreateEntitiesInputEntities, CreateRelationsInputRelations, MemoryClient
from mcp_bindgen.v2025_11_25 import types as mcp

async def main() -> None:
    async with MemoryClient.connect(sys.argv[2:]) as server:
        ada = CreateEntitiesInputEntities(name="Ada", entity_type="person", observations=["counts"])
        engine = CreateEntitiesInputEntities(name="Engine", entity_type="machine", observations=[])
        created = (await server.create_entities(entities=[ada, engine])).entities
        assert [(entity.name, entity.entity_type) for entity in created] == [("Ada", "person"), ("Engine", "machine")]
        programs = CreateRelationsInputRelations(from_="Ada", to="Engine", relation_type="programs")
        (relation,) = (await server.create_relations(relations=[programs])).relations
        assert (relation.from_, relation.to) == ("Ada", "Engine")
        graph = await server.search_nodes(query="counts")
        assert [entity.observations for entity in graph.entities] == [["counts"]]
        done = await server.delete_entities(entity_names=["Ada"])
        assert done.success is True and "deleted" in done.message
        assert [entity.name for entity in (await server.read_graph()).entities] == ["Engine"]
        (whole,) = (await server.read_knowledge_graph()).contents
        assert isinstance(whole, mcp.TextResourceContents) and "Engine" in whole.text

anyio.run(main)
"""

CLOCK = """
import sys
import anyio
import pytest
from clock import ClockClient
from mcp_bindgen.app import ToolError

async def main() -> None:
    async with ClockClient.connect(sys.argv[2:]) as server:
        now = await server.get_current_time(timezone="Asia/Tokyo")
        assert now.timezone == "Asia/Tokyo" and now.datetime.endswith("+09:00") and now.is_dst is False
        later = await server.convert_time(source_timezone="Asia/Tokyo", time="12:30", target_timezone="Asia/Kolkata")
        assert later.time_difference == "-3.5h"
        assert later.target.datetime.endswith("T09:00:00+05:30")
        with pytest.raises(ToolError, match="Nowhere"):
            await server.get_current_time(timezone="Nowhere/Land")

anyio.run(main)
"""

REPOSITORY = """
import sys
from pathlib import Path
import anyio
from repository import RepositoryClient
from mcp_bindgen.v2026_07_28 import types as mcp

def text(blocks: list[mcp.ContentBlock]) -> str:
    return "\\n".join(block.text for block in blocks if isinstance(block, mcp.TextContent))

async def main() -> None:
    folder = Path(sys.argv[1])
    (folder / "notes.txt").write_text("one\\n")
    async with RepositoryClient.connect(sys.argv[2:]) as server:
        assert "notes.txt" in text(await server.git_status(repo_path=str(folder)))
        await server.git_add(repo_path=str(folder), files=["notes.txt"])
        assert "+one" in text(await server.git_diff_staged(repo_path=str(folder), context_lines=1))
        assert "Changes committed" in text(await server.git_commit(repo_path=str(folder), message="A note"))
        assert "Nobody" in text(await server.git_log(repo_path=str(folder), max_count=1))
        assert "A note" in text(await server.git_log(repo_path=str(folder), start_timestamp=None))
        await server.git_create_branch(repo_path=str(folder), branch_name="second")
        assert "second" in text(await server.git_branch(repo_path=str(folder), branch_type="local"))

anyio.run(main)
"""


@dataclass(frozen=True)
class Real:
    """Third-party server.

    Attributes:
        name: Our name for it, and the name of the client's module.
        starts: Returns the command that starts it, given a working folder.
        program: Program that calls it with its typed client; the arguments are that folder and the command.
        change: A tool, and one of its optional arguments.
        revision: The newest revision that it supports.
    """

    name: str
    starts: Callable[[Path], Sequence[str]]
    program: str
    change: tuple[str, str]
    revision: str = STATEFUL

    @property
    def is_npm(self) -> bool:
        """True if the server is an npm package."""
        return self.revision == STATEFUL

    @property
    def is_needed(self) -> bool:
        """True if the server is installed, or if it has to be because this is CI."""
        return not self.is_npm or MODULES.is_dir() or "CI" in os.environ


def _npm(name: str) -> tuple[str, str]:
    return node(), str(MODULES / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js")


def _with(*command: str, **variables: object) -> tuple[str, ...]:
    """Return a command with environment variables, as clients pass few variables to a server."""
    return ("env", *(f"{name}={value}" for name, value in variables.items()), *command)


NOBODY = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{who}_NAME": "Nobody" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "nobody@example.com" for who in ("AUTHOR", "COMMITTER")},
}
"""Environment variables that set author and committer of commits."""


def _memory(folder: Path) -> Sequence[str]:
    return _with(*_npm("memory"), MEMORY_FILE_PATH=folder / "memory.jsonl")


def _repository(folder: Path) -> Sequence[str]:
    return _with(PYTHON, "-m", "mcp_server_git", "--repository", str(folder), **NOBODY)


REAL = [
    Real("everything", lambda folder: _npm("everything"), EVERYTHING, ("get-resource-links", "count")),
    Real("filesystem", lambda folder: (*_npm("filesystem"), str(folder)), FILESYSTEM, ("read_text_file", "head")),
    Real("memory", _memory, MEMORY, ("create_entities", "because")),
    Real("clock", lambda folder: (PYTHON, "-m", "mcp_server_time"), CLOCK, ("convert_time", "why"), STATELESS),
    Real("repository", _repository, REPOSITORY, ("git_log", "max_count"), STATELESS),
]


@dataclass(frozen=True)
class Place:
    """Folders and files of a server and its client.

    Attributes:
        real: The server.
        folder: The folder of all files.
    """

    real: Real
    folder: Path

    @property
    def work(self) -> Path:
        """Return the working folder of the server."""
        return self.folder.resolve() / "work"

    @property
    def clients(self) -> Path:
        """Return the folder of the client's module and of the program that uses it."""
        return self.folder / "clients"

    @property
    def contract(self) -> Path:
        """Return the file with the exported contract."""
        return self.folder / "contract.json"

    @property
    def command(self) -> list[str]:
        """Return the command that starts the server."""
        return list(self.real.starts(self.work))

    @property
    def module(self) -> Path:
        """Return the file of the client's module."""
        return self.clients / f"{self.real.name}.py"

    @property
    def document(self) -> Any:
        """Return the contract as a JSON document."""
        return json.loads(self.contract.read_text("utf-8"))

    def scaffold(self, contract: Path, folder: Path) -> Project:
        """Scaffold a server from a contract."""
        options = ("--contract", contract, "--revision", self.real.revision, "--out", folder)
        inside("scaffold", "server", self.real.name, *options, code=0)
        return Project.read(folder / self.real.name)

    def check(self, command: Sequence[str], **variables: str) -> Done:
        """Check whether the typed client is up to date with a live server."""
        settings = [word for pair in variables.items() for word in ("--env", "=".join(pair))]
        return inside("client", "--from", shlex.join(command), "--out", self.module, "--check", *settings)


def meet(factory: pytest.TempPathFactory, real: Real) -> Place:
    """Return a server with its client; skip the test if the server is not installed (in CI: fail)."""
    if real.is_npm:
        needed()
    return Place(real, filled(factory, partial(write_client, real), f"real-{real.name}"))


def write_client(real: Real, folder: Path) -> None:
    """Export the contract of a server, generate a typed client from it, and write the program that uses the client."""
    place = Place(real, folder)
    place.work.mkdir()
    place.clients.mkdir()
    subprocess.run(["git", "init", "--quiet", place.work], check=True)
    inside("contract", "export", shlex.join(place.command), "--out", place.contract, code=0)
    inside("client", "--from", place.contract, "--out", place.module, code=0)
    (place.clients / f"use_{real.name}.py").write_text(real.program, "utf-8")


@pytest.fixture(
    params=cases(REAL, quick=[each for each in REAL if not each.is_npm][:1]), ids=lambda real: real.name, scope="module"
)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Return a server and its client, for each server."""
    return meet(tmp_path_factory, request.param)


def starts(project: Project) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment that start a project that is not installed."""
    return [PYTHON, "-m", project.package], {"PYTHONPATH": str(project.folder / "src")}


@pytest.mark.full
def test_an_exported_contract_equals_the_lists_of_the_server(place: Place) -> None:
    document = place.document
    assert document["revision"] == place.real.revision
    assert document["serverInfo"]["name"]
    with raw(place.command, place.real.revision) as server:
        listed = server.lists()
    assert listed["tools"]
    assert exact({member: document.get(member) for member in LISTS.values()}) == exact(listed)


@pytest.mark.full
def test_typed_calls_work_and_the_client_is_in_sync(place: Place) -> None:
    program = place.clients / f"use_{place.real.name}.py"
    done = execute("timeout", "60", PYTHON, "-W", "error", program, place.work, *place.command, code=0)
    done = place.check(place.command)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.full
def test_a_scaffolded_server_passes_its_tests_and_lists_the_same_entries(place: Place, tmp_path: Path) -> None:
    project = place.scaffold(place.contract, tmp_path / "project")
    command, variables = starts(project)
    done = execute("timeout", "120", PYTHON, "-m", "pytest", "-q", cwd=project.folder, **variables, code=0)

    with raw(command, place.real.revision, variables=variables) as server:
        listed = server.lists()
    with raw(place.command, place.real.revision) as server:
        assert exact(listed) == exact(server.lists())
    done = place.check(command, **variables)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.full
def test_a_newly_required_argument_is_reported(place: Place, tmp_path: Path) -> None:
    tool, argument = place.real.change
    document = copy.deepcopy(place.document)
    (entry,) = [each for each in document["tools"] if each["name"] == tool]
    schema = entry["inputSchema"]
    schema["properties"].setdefault(argument, {"type": "string"})
    schema["required"] = [*schema["required"], argument] if "required" in schema else [argument]
    command, variables = starts(place.scaffold(save(tmp_path / "tampered.json", document), tmp_path / "tampered"))
    done = place.check(command, **variables)
    assert done.returncode == 1, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert f"tool {tool} refuses arguments that were valid: argument {argument} is " in said
    assert "required" in said
