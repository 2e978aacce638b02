"""Every project that `scaffold` makes passes ruff and its own tests, and answers the Python SDK and the Inspector.

`skeletons.py` lists the variants: each revision, each feature alone and all together, each transport, with and without
a contract. `make test` scaffolds a handful, `make test-all` most, `pytest -m slow` the rest. `test_types.py` checks
their types. The official Python client calls every method of every server, over each of its transports. The Inspector's
command line lists the features of the servers that have all of them; over HTTP it calls every method of servers with a
full contract. A client that cannot choose among several revisions is tested with the newest of each era.
"""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from mcp_bindgen.ir.model import Sender
from mcp_bindgen.scaffold import features as scaffold_features
from tests.harness.commands import Done, execute
from tests.harness.effort import selection
from tests.harness.forks import PYTHON
from tests.harness.shared import shared_folder
from tests.harness.skeleton_clients import (
    LATEST,
    STATELESS,
    Asked,
    ask,
    at_url,
    by_command,
    era,
    eras,
    old_or_new,
    together,
)
from tests.harness.skeletons import (
    ALL,
    EVERY_VARIANT,
    GROUPS,
    KINDS,
    REST_GROUP,
    REVISIONS,
    Variant,
    Workshop,
    features,
    group,
    protocol,
    search_path,
    serving,
)
from tests.interop.inspector import inspect
from tests.interop.processes import SDK_SERVER, free_port, listening, needed

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
rest = pytest.param(REST_GROUP, marks=pytest.mark.slow)
by_group = pytest.mark.parametrize("name", [*selection(("handful",), GROUPS), rest])


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Return the workshop that scaffolds the projects."""
    return Workshop(shared_folder(tmp_path_factory) / "skeletons")


# --- variants ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", KINDS)
@pytest.mark.parametrize("revision", REVISIONS)
def test_the_variants_have_every_feature_that_can_be_chosen(revision: str, side: Sender) -> None:
    assert set(features(revision, side)) == set(scaffold_features.features(protocol(revision), side))


def test_variant_names_are_unique() -> None:
    assert max(Counter(each.name for each in EVERY_VARIANT).values()) == 1


# --- ruff, and their own tests -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names", [selection(("handful",), GROUPS), pytest.param((REST_GROUP,), marks=pytest.mark.slow)]
)
def test_all_projects_pass_ruff(names: Sequence[str], workshop: Workshop) -> None:
    folders = [workshop.project(each).folder for name in names for kind in KINDS for each in group(name, kind)]
    execute(sys.executable, "-m", "ruff", "check", "--no-cache", "--extend-select=I", *folders, code=0)
    execute(sys.executable, "-m", "ruff", "format", "--no-cache", "--check", *folders, code=0)


@by_group
def test_all_projects_pass_their_own_tests(name: str, workshop: Workshop, tmp_path: Path) -> None:
    """Run one process for each revision; every project must have tests that run, and warnings are errors."""
    projects = [workshop.project(each) for kind in KINDS for each in group(name, kind)]
    result = tmp_path / "result.xml"
    options = ["-q", "-W", "error", "-p", "no:cacheprovider", "--import-mode=importlib", "--tb=short"]
    options += [f"--rootdir={workshop.root}", f"--junitxml={result}", "-o", "junit_family=xunit1"]
    tests = [project.folder / "tests" for project in projects]
    execute(PYTHON, "-m", "pytest", *options, *tests, cwd=tmp_path, **search_path(projects), code=0)
    cases = [each for each in ElementTree.parse(result).getroot().iter("testcase") if each.find("skipped") is None]
    assert {Path(each.attrib["file"]).parts[0] for each in cases} == {project.folder.name for project in projects}


# --- the official Python client -----------------------------------------------------------------------------------


@pytest.mark.full
@by_group
async def test_all_servers_answer_the_python_sdk_over_stdio(name: str, workshop: Workshop) -> None:
    from tests.harness.skeleton_sdk import over_stdio

    asked = [(each, workshop.project(each), one) for each in group(name, over="stdio") for one in eras(each)]
    await together({f"{each.name} in {one}": partial(over_stdio, each, made, one) for each, made, one in asked})


@pytest.mark.full
@by_group
async def test_all_servers_answer_the_python_sdk_over_http(name: str, workshop: Workshop) -> None:
    from tests.harness.skeleton_sdk import over_http

    variants = [(each, workshop.project(each)) for each in group(name, over="http")]
    async with serving([project for _, project in variants]) as places:
        asked = [(each, places[project.package], one) for each, project in variants for one in each.revisions]
        await together({f"{each.name} in {one}": partial(over_http, each, url, one) for each, url, one in asked})


# --- the Inspector ------------------------------------------------------------------------------------------------


INSPECTED = (REVISIONS[0], LATEST, STATELESS[-1], "several")
"""Groups for `make test-all`: the Inspector cannot choose a revision, only an era."""
by_inspected_group = pytest.mark.parametrize(
    "name",
    [each if each in INSPECTED else pytest.param(each, marks=pytest.mark.slow) for each in GROUPS],
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a folder for the Inspector's files; skip the test if its package is not installed (in CI: fail)."""
    needed()
    return tmp_path


@pytest.mark.full
@by_inspected_group
async def test_all_servers_answer_the_inspector_over_stdio(name: str, workshop: Workshop, home: Path) -> None:
    variants = [each for each in group(name, over="stdio") if each.part == ALL]
    asked = [(each, revision, by_command(workshop.project(each))) for each in variants for revision in eras(each)]
    await ask(home, starmap(Asked, asked))


@pytest.mark.full
@by_inspected_group
async def test_all_servers_answer_the_inspector_over_http(name: str, workshop: Workshop, home: Path) -> None:
    variants = [(each, workshop.project(each)) for each in group(name, over="http") if each.part == ALL]
    async with serving([project for _, project in variants]) as places:
        servers = [(each, one, places[project.package]) for each, project in variants for one in eras(each)]
        await ask(home, [Asked(each, one, at_url(url, one), each.contracted) for each, one, url in servers])


@pytest.mark.full
@pytest.mark.parametrize(("written", "asked"), [(LATEST, STATELESS[-1]), (STATELESS[-1], LATEST)])
async def test_a_stateful_server_answers_a_stateless_inspector_and_vice_versa(
    written: str, asked: str, workshop: Workshop, home: Path
) -> None:
    target = by_command(workshop.project(Variant("server", (written,), "tools", ("stdio",))))
    printed = await inspect(home, {"": [*era(asked), *target, "--method", "tools/list"]})
    assert (printed[""].code, [tool["name"] for tool in printed[""].output["tools"]]) == (0, ["greet"])


# --- clients ------------------------------------------------------------------------------------------------------


@pytest.mark.full
@by_group
async def test_all_clients_understand_a_server_of_the_python_sdk(name: str, workshop: Workshop) -> None:
    """The server requests every feature of each client; the command of a client with all features lists the server."""
    variants = [(each, workshop.project(each)) for each in group(name, "client")]
    path = search_path([project for _, project in variants])["PYTHONPATH"]
    port = free_port()
    async with listening(*SDK_SERVER, "--http", f"127.0.0.1:{port}", port=port):
        places = {revision: f"http://127.0.0.1:{port}/{old_or_new(revision)}" for revision in REVISIONS}
        asked: dict[str, Any] = {}
        for each, project in variants:
            for revision, module in each.modules.items():
                tools = [TOOLS[feature] for feature in each.features(revision) if feature in TOOLS]
                asked[f"{project.package}.{module}"] = (places[revision], tools)
        done = await run("-c", ASK, json.dumps(asked), path=path)
        answers = json.loads(done.stdout)
        for module, (_, tools) in asked.items():
            assert answers[module].keys() == {tool for tool, _ in tools}
            assert all(SAID[tool] in text for tool, text in answers[module].items()), answers[module]
        for each, project in variants:
            if each.part == ALL and "http" in each.transports:
                done = await run("-m", project.package, places[each.revisions[-1]], path=path)
                assert done.stderr == ""
                assert done.stdout.splitlines()[:2] == ["fixture", "prompt: greet"], each.name


TOOLS: Mapping[str, tuple[str, dict[str, str]]] = {
    "elicitation": ("elicit", {"question": "Who?"}),
    "roots": ("roots", {}),
    "sampling": ("sample", {"prompt": "Hello?"}),
}
"""Client feature -> the tool of the SDK's server that needs it, and the arguments of that tool."""

SAID = {"elicit": '"decline"', "roots": "file://", "sample": "no model"}
"""Tool -> text of its result after the default response of a scaffolded client."""

ASK = """
import importlib, json, sys
import anyio
from mcp_bindgen.runtime import Client

async def main(asked):
    answers = {}
    for module, (url, tools) in asked.items():
        classes = [each for each in vars(importlib.import_module(module)).values() if isinstance(each, type)]
        (kind,) = (each for each in classes if issubclass(each, Client) and each.__module__ == module)
        async with kind.connect(url) as client:
            said = {name: await client.call_tool(name, arguments) for name, arguments in tools}
        answers[module] = {name: result.content[0].text for name, result in said.items() if not result.is_error}
    print(json.dumps(answers))

anyio.run(main, json.loads(sys.argv[1]))
"""
"""Program that calls tools of a server with each client and prints the results."""


async def run(*words: str, path: str) -> Done:
    """Run Python to completion in a worker thread; it must succeed."""
    done = await to_thread.run_sync(partial(execute, PYTHON, "-W", "error", *words, PYTHONPATH=path))
    assert done.returncode == 0, done.stderr
    return done
