"""Tests of the servers of `skeletons.py` with the Inspector; `skeleton_sdk.py` uses the official Python SDK."""

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
from tests.harness.forks import PYTHON
from tests.harness.skeletons import ALL, REVISIONS, SECTIONS, Variant, declared, protocol, search_path
from tests.interop.inspector import inspect

AT_ONCE = 4
"""Number of concurrent connections."""

PATIENCE = 60.0
"""Time limit of a connection in seconds."""

METHODS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}
"""Section of a contract -> method that lists it."""

STATELESS = [revision for revision in REVISIONS if protocol(revision).era == "stateless"]
LATEST = [revision for revision in REVISIONS if revision not in STATELESS][-1]


async def together(jobs: Mapping[str, Callable[[], Awaitable[None]]]) -> None:
    """Run all jobs, `AT_ONCE` at a time; then fail with the names of the failed jobs."""
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
    """Return the revisions for clients that cannot choose one: the newest of each era.

    A server with one feature is tested only in the newest of all.
    """
    newest = list({protocol(revision).era: revision for revision in variant.revisions}.values())
    return newest if variant.part == ALL else newest[-1:]


def old_or_new(revision: str) -> str:
    """Return the last part of a URL: `sse` for the first revision, which has only HTTP+SSE, else `mcp`."""
    return "sse" if revision == REVISIONS[0] else "mcp"


def start(project: Project) -> list[str]:
    """Return the command that starts a server over stdio, with warnings as errors."""
    return [PYTHON, "-W", "error", "-m", project.package]


def example(schema: Mapping[str, Any]) -> Any:
    """Return a minimal value that a simple schema accepts, without optional members."""
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
    """Requests of the Inspector to one server.

    Attributes:
        variant: The variant of the server.
        revision: A revision of the era that the Inspector uses.
        target: The arguments that select the server.
        thorough: True to send all requests, False to send only the last one.
    """

    variant: Variant
    revision: str
    target: Sequence[str]
    thorough: bool = False


async def ask(home: Path, servers: Iterable[Asked]) -> None:
    """Send requests with the Inspector and check the responses."""
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
    """Return the arguments that choose the era of a revision."""
    return ["--protocol-era", "modern" if revision in STATELESS else "legacy"]


def by_command(project: Project) -> list[str]:
    """Return the arguments for a server that the Inspector starts."""
    settings = [f"{name}={value}" for name, value in search_path([project]).items()]
    return [*start(project), "-e", *settings]


def at_url(address: str, revision: str) -> list[str]:
    """Return the arguments for a server that already listens."""
    path = old_or_new(revision)
    return ["--transport", "http" if path == "mcp" else path, "--server-url", f"{address}/{path}"]


def questions(variant: Variant, revision: str) -> Iterator[tuple[list[str], Callable[[Any], object]]]:
    """Yield arguments of the Inspector with a check of the response; the most significant request is last."""
    spoken = revision if revision in STATELESS else LATEST  # the Inspector requests that; servers support all
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
    """Return True if a list matches the contract, without enums, which the Inspector omits."""
    if entries is None:
        return bool(answer[section])
    plain = [{name: value for name, value in entry.items() if name != "variables"} for entry in entries]
    for entry in plain:
        if "arguments" in entry:
            entry["arguments"] = [{name: each[name] for name in each.keys() - {"enum"}} for each in entry["arguments"]]
    return bool(answer[section] == plain)
