"""How the Inspector talks to the servers of `skeletons.py`; `skeleton_sdk.py` has the official Python SDK."""

from __future__ import annotations

import json
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from mcp_bindgen.scaffold.project import Project
from tests.interop.inspector import inspect
from tests.support.forks import PYTHON
from tests.support.skeletons import ALL, REVISIONS, SECTIONS, Variant, declared, protocol, search_path

AT_ONCE = 4
"""Conversations at the same time."""

PATIENCE = 60.0
"""Seconds that one of them may take."""

METHODS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}
"""Section of a contract -> the method that lists it."""

STATELESS = [revision for revision in REVISIONS if protocol(revision).era == "stateless"]
LATEST = [revision for revision in REVISIONS if revision not in STATELESS][-1]


async def together(jobs: Mapping[str, Callable[[], Awaitable[None]]]) -> None:
    """Does jobs, a few at a time; all of them, and those that failed are named."""
    limiter = anyio.CapacityLimiter(AT_ONCE)
    failures: list[str] = []

    async def work(name: str, job: Callable[[], Awaitable[None]]) -> None:
        async with limiter:
            try:
                with anyio.fail_after(PATIENCE):
                    await job()
            except Exception as error:
                while isinstance(error, ExceptionGroup):
                    error = error.exceptions[0]
                failures.append("".join([f"{name}: ", *traceback.format_exception(error)[-2:]]))

    async with anyio.create_task_group() as tasks:
        for name, job in jobs.items():
            tasks.start_soon(work, name, job)
    assert not failures, "\n".join(failures)


def eras(variant: Variant) -> list[str]:
    """The revisions of a conversation in which the client cannot choose: the newest of each era.

    A server with one feature is asked in the newest of all.
    """
    newest = list({protocol(revision).era: revision for revision in variant.revisions}.values())
    return newest if variant.part == ALL else newest[-1:]


def old_or_new(revision: str) -> str:
    """The last part of a URL: the first revision has only HTTP+SSE."""
    return "sse" if revision == REVISIONS[0] else "mcp"


def start(project: Project) -> list[str]:
    """The command that starts a server over stdio; its warnings are errors."""
    return [PYTHON, "-W", "error", "-m", project.package]


def example(schema: Mapping[str, Any]) -> Any:
    """A value that a plain schema accepts: what must be there, and nothing else."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {name: example(schema["properties"][name]) for name in schema.get("required", ())}
        case "string":
            return "example"
        case "integer" | "number":
            return schema.get("minimum", 1)
        case other:
            raise AssertionError(f"an example of {other} is missing")


# --- the Inspector ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """Questions of the Inspector to a server.

    Attributes:
        variant: What the server is.
        revision: The Inspector asks in its era.
        target: The words that name the server.
        thorough: Ask for everything, and not only for what the server is about.
    """

    variant: Variant
    revision: str
    target: Sequence[str]
    thorough: bool = False


async def ask(home: Path, servers: Iterable[Asked]) -> None:
    """Have the Inspector ask servers, and look at the answers."""
    runs: dict[str, list[str]] = {}
    checks: dict[str, Callable[[Any], object]] = {}
    for server in servers:
        asked = list(questions(server.variant, server.revision))
        for options, is_right in asked if server.thorough else asked[-1:]:
            name = f"{server.variant.name}, in {server.revision}, {options}"
            runs[name] = [*era(server.revision), *server.target, "--method", *options]
            checks[name] = is_right
    printed = await inspect(home, runs)
    assert [f"{name}: {each.error}" for name, each in printed.items() if each.code] == []
    assert {name: each.output for name, each in printed.items() if not checks[name](each.output)} == {}


def era(revision: str) -> list[str]:
    """Return the words that choose the era of a revision."""
    return ["--protocol-era", "modern" if revision in STATELESS else "legacy"]


def by_command(project: Project) -> list[str]:
    """The words that name a server that is started."""
    settings = [f"{name}={value}" for name, value in search_path([project]).items()]
    return [*start(project), "-e", *settings]


def at_url(address: str, revision: str) -> list[str]:
    """The words that name a server that listens."""
    path = old_or_new(revision)
    return ["--transport", "http" if path == "mcp" else path, "--server-url", f"{address}/{path}"]


def questions(variant: Variant, revision: str) -> Iterator[tuple[list[str], Callable[[Any], object]]]:
    """Return what the Inspector may ask a server, and whether an answer is right; the most telling is last."""
    spoken = revision if revision in STATELESS else LATEST  # the Inspector asks for that, and servers speak all
    chosen, document = variant.features(spoken), variant.document
    parts = [name for name in document if SECTIONS.get(name) in chosen and variant.part in (ALL, name, SECTIONS[name])]
    yield (
        ["initialize"],
        lambda answer: (
            (answer["protocolVersion"], answer["serverInfo"]["name"]) == (spoken, variant.title)
            and answer["capabilities"].keys() == declared(spoken, "server", chosen)
        ),
    )
    if "logging" in chosen and revision not in STATELESS:
        yield ["logging/setLevel", "--log-level", "warning"], lambda answer: answer == {}
    for section in parts:
        yield [METHODS[section]], partial(lists, section, document[section] if variant.contracted else None)
    if "resources" in parts:
        uri = document["resources"][0]["uri"]
        yield ["resources/read", "--uri", uri], lambda answer: [each["uri"] for each in answer["contents"]] == [uri]
    if "prompts" in parts:
        prompt = document["prompts"][0]
        values = [f"{name}={value}" for name, value in variant.values(prompt["name"]).items()]
        words = ["--prompt-name", prompt["name"], "--prompt-args", *values]
        yield ["prompts/get", *words], lambda answer: answer["messages"]
    if "tools" in parts:
        tool = document["tools"][0]
        words = ["--tool-name", tool["name"], "--tool-args-json", json.dumps(example(tool["inputSchema"]))]
        yield ["tools/call", *words], lambda answer: answer["content"] and not answer.get("isError")


def lists(section: str, entries: list[Any] | None, answer: Mapping[str, Any]) -> bool:
    """Tell whether a list is what the contract says, but for the enums, which the Inspector leaves out."""
    if entries is None:
        return bool(answer[section])
    plain = [{name: value for name, value in entry.items() if name != "variables"} for entry in entries]
    for entry in plain:
        if "arguments" in entry:
            entry["arguments"] = [{name: each[name] for name in each.keys() - {"enum"}} for each in entry["arguments"]]
    return bool(answer[section] == plain)
