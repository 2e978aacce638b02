"""`examples/written_once.py`, one class of one revision, and clients of every revision: ours and official ones.

Whatever it says is held against the schema of the revision that the connection speaks.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_bindgen.runtime.http.client.legacy_sse import sse
from mcp_bindgen.runtime.http.client.transport import http
from mcp_bindgen.runtime.transports.stdio import stdio
from tests.interop import dated
from tests.interop.eavesdrop import Eavesdropper, Overheard
from tests.interop.peers import Listener, valid
from tests.interop.processes import HERE, free_port, listening
from tests.interop.report import REVISIONS, STATELESS, Report
from tests.support.checked_connections import bindings, bounded, oracle
from tests.support.commands import ROOT

pytestmark = pytest.mark.flaky(reruns=1)  # other processes on a busy machine may be slow once

SERVER = (sys.executable, str(ROOT / "examples" / "written_once.py"))
PATHS = {"sse": "/sse", "http": "/mcp"}


@asynccontextmanager
async def served() -> AsyncGenerator[int]:
    """The server over HTTP; gives its port."""
    port = free_port()
    async with listening(*SERVER, "--port", str(port), port=port):
        yield port


def heard(recording: Listener, revision: str) -> list[str]:
    """What is wrong with what the server said to one of our clients."""
    judge, found = oracle(revision), list[str]()
    asked = {message["id"]: message["method"] for message in recording.sent if "method" in message and "id" in message}
    for message in recording.received:
        found += judge.message(message)
        if "result" in message:
            found += judge.result(asked[message["id"]], message["result"])
    return found


def client(revision: str) -> Any:
    """One of our clients, whose user and model answer."""
    package: Any = bindings(revision)
    mcp = package.types

    class Asked(package.Client):  # type: ignore[misc]
        """Answers."""

        def on_create_message(self, params: Any, ctx: Any) -> Any:
            content = mcp.TextContent(text="Raise the dead.")
            return mcp.CreateMessageResult(content=content, model="fake", role="assistant")

        def on_elicit(self, params: Any, ctx: Any) -> Any:
            return mcp.ElicitResult(action="accept", content={"line": "Tea"})

    return Asked()


def expected(revision: str) -> dict[str, list[str]]:
    """Tool -> the blocks of content that clients of a revision get."""
    since_march, since_june = revision >= "2025-03-26", revision >= "2025-06-18"
    return {
        "sing": ["AudioContent"] if since_march else ["EmbeddedResource"],
        "find": ["ResourceLink"] * 2 if since_june else ["TextContent"] * 2,
        "count": [] if since_june else ["TextContent"],
        "rhyme": ["TextContent"],
        "tidy": ["TextContent"],
    }


async def converse(asker: Any, revision: str) -> None:
    """Try everything that the server has."""
    mcp = bindings(revision).types
    assert asker.server_info.name == "written-once"
    assert {tool.name async for tool in asker.iter_tools()} == {"add", *expected(revision)}
    for name, kinds in expected(revision).items():
        result = await asker.call_tool(name)
        assert not result.is_error, (name, result)
        assert [type(block).__name__ for block in result.content] == kinds, name
    counted = await asker.call_tool("count")
    wire = counted.model_dump()["structuredContent"]
    assert wire["words"]["note:///song"] == 3
    if revision < "2025-06-18":
        assert json.loads(counted.content[0].text) == wire
    else:
        assert (await asker.call_tool("add")).content[0].text == "Added Tea."
    steps: list[Any] = []
    await asker.with_options(on_progress=steps.append).call_tool("tidy")
    assert [step.progress for step in steps] == [1, 2]
    assert [each.uri async for each in asker.iter_resources()] == ["note:///song", "note:///list"]
    assert [each.name async for each in asker.iter_resource_templates()] == ["note"]
    assert (await asker.read_resource("note:///song")).contents[0].text == "La, la, la."
    prompt = await asker.get_prompt("shorten", {"note": "song"})
    assert prompt.messages[0].content.text == "Shorten this: La, la, la."
    argument = mcp.CompleteRequestParamsArgument(name="note", value="so")
    completed = await asker.complete(mcp.PromptReference(name="shorten"), argument)
    assert completed.completion.values == ["song"]


async def try_ours(way: AbstractAsyncContextManager[Any], revision: str) -> None:
    """Have one of our clients try everything, and judge both sides."""
    asker = client(revision)
    async with way as transport:
        recording = Listener(transport, revision)
        async with asker.connected(recording):
            await converse(asker, revision)
        recording.check()
    assert heard(recording, revision) == []


@pytest.mark.parametrize(
    "revision",
    [each if each in ("2024-11-05", STATELESS) else pytest.param(each, marks=pytest.mark.full) for each in REVISIONS],
)
@bounded()
async def test_our_clients_of_every_revision_over_stdio(revision: str) -> None:
    await try_ours(stdio(*SERVER, stderr=subprocess.DEVNULL), revision)


@bounded()
async def test_our_clients_of_every_revision_over_http_at_the_same_time() -> None:
    async with served() as port, anyio.create_task_group() as tasks:
        for revision in REVISIONS[1:]:
            tasks.start_soon(try_ours, http(f"http://127.0.0.1:{port}/mcp"), revision)
        tasks.start_soon(try_ours, sse(f"http://127.0.0.1:{port}/sse"), "2024-11-05")


# --- official clients -----------------------------------------------------------------------------------------


async def run(command: Sequence[str], **environment: str) -> Any:
    """What a client prints, which must succeed."""
    import os

    done = await anyio.run_process(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return json.loads(done.stdout)


async def judged(revision: str, conversations: Sequence[Overheard]) -> None:
    """Hold what our server said against the schema."""
    report = Report("an official client", revision, "")
    report.works.append("tools")
    await valid(report, conversations)
    assert not report.failures, report.failures


def tapped(folder: Path) -> list[str]:
    """The command of the server, which writes down what it says and hears."""
    return [sys.executable, str(HERE / "tap.py"), str(folder / "said"), *SERVER]


def said(folder: Path) -> Overheard:
    """What `tap.py` wrote."""
    found = Overheard()
    for line in (folder / "said").read_bytes().splitlines():
        mark, _, message = line.partition(b" ")
        {b">": found.asked, b"<": found.said}.get(mark, []).append(message)
    return found


SPOKEN = {"1.6.0": "2024-11-05", "1.12.4": "2025-06-18", "1.23.3": "2025-11-25"}
"""Version of the official Python SDK -> the revision that it speaks."""


def judge_dated(saw: dict[str, Any], revision: str) -> None:
    """Hold what an official client saw against what there is to see."""
    assert (saw["revision"], saw["server"]) == (revision, "written-once")
    assert {name: saw[name] for name in expected(revision)} == expected(revision)
    assert saw["structured"]["words"]["note:///song"] == 3
    assert saw["rhyme said"] == "Raise the dead."
    assert (saw["unknown"], saw["read"], saw["completed"]) == (-32002, "La, la, la.", ["song"])
    if saw["elicits"]:
        assert saw["add said"] == "Added Tea."


@pytest.mark.full
@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize("version", dated.VERSIONS)
def test_official_clients_of_each_era_of_the_python_sdk(version: str, over: str, tmp_path: Path) -> None:
    place = str(dated.folder(version))
    script, revision = str(HERE / "dated_client.py"), SPOKEN[version]

    @bounded(60)
    async def talk() -> None:
        if over == "stdio":
            saw = await run([sys.executable, script, over, *tapped(tmp_path)], PYTHONPATH=place)
            await judged(revision, [said(tmp_path)])
        else:
            way = "sse" if revision == "2024-11-05" else "http"
            async with served() as port:
                eavesdropper = Eavesdropper(port)
                async with eavesdropper.listening() as near:
                    address = f"http://127.0.0.1:{near}{PATHS[way]}"
                    saw = await run([sys.executable, script, way, address], PYTHONPATH=place)
                await judged(revision, eavesdropper.conversations())
        judge_dated(saw, revision)

    talk()
