"""`examples/written_once.py`, a server class of one revision, with our and official clients of every revision.

Every message of the server is validated against the schema of the connection's revision.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_bindgen.http.client.legacy_sse import sse
from mcp_bindgen.http.client.transport import http
from mcp_bindgen.runtime.transports.stdio import stdio
from tests.harness.checked_connections import bindings, oracle
from tests.harness.commands import ROOT, execute
from tests.harness.forks import PYTHON
from tests.interop import dated
from tests.interop.eavesdrop import Eavesdropper, Overheard
from tests.interop.peers import Listener, valid
from tests.interop.processes import HERE, free_port, listening, needed, node
from tests.interop.report import REVISIONS, STATEFUL, STATELESS, Report


def server() -> tuple[str, ...]:
    """Return the command of the server."""
    return PYTHON, str(ROOT / "examples" / "written_once.py")


PATHS = {"sse": "/sse", "http": "/mcp"}


@asynccontextmanager
async def served() -> AsyncGenerator[int]:
    """Run the server over HTTP; yield its port."""
    port = free_port()
    async with listening(*server(), "--port", str(port), port=port):
        yield port


def heard(recording: Listener, revision: str) -> list[str]:
    """Return the problems of the server's messages to one of our clients."""
    judge, found = oracle(revision), list[str]()
    asked = {message["id"]: message["method"] for message in recording.sent if "method" in message and "id" in message}
    for message in recording.received:
        found += judge.message(message)
        if "result" in message:
            found += judge.result(asked[message["id"]], message["result"])
    return found


def client(revision: str) -> Any:
    """Return one of our clients with handlers for sampling and elicitation."""
    package: Any = bindings(revision)
    mcp = package.types

    class Asked(package.Client):  # type: ignore[misc]
        """Client that accepts every request."""

        def on_create_message(self, params: Any, ctx: Any) -> Any:
            content = mcp.TextContent(text="Raise the dead.")
            return mcp.CreateMessageResult(content=content, model="fake", role="assistant")

        def on_elicit(self, params: Any, ctx: Any) -> Any:
            return mcp.ElicitResult(action="accept", content={"line": "Tea"})

    return Asked()


def expected(revision: str) -> dict[str, list[str]]:
    """Return tool -> types of the content blocks that clients of a revision get."""
    since_march, since_june = revision >= "2025-03-26", revision >= "2025-06-18"
    return {
        "sing": ["AudioContent"] if since_march else ["EmbeddedResource"],
        "find": ["ResourceLink"] * 2 if since_june else ["TextContent"] * 2,
        "count": [] if since_june else ["TextContent"],
        "rhyme": ["TextContent"],
        "tidy": ["TextContent"],
    }


async def converse(asker: Any, revision: str) -> None:
    """Try every feature of the server."""
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
    """Try every feature with one of our clients, and validate the messages of both sides."""
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
async def test_our_clients_of_every_revision_work_over_stdio(revision: str) -> None:
    await try_ours(stdio(*server(), stderr=subprocess.DEVNULL), revision)


@pytest.mark.full
async def test_our_clients_of_every_revision_work_over_http_concurrently() -> None:
    async with served() as port, anyio.create_task_group() as tasks:
        for revision in REVISIONS[1:]:
            tasks.start_soon(try_ours, http(f"http://127.0.0.1:{port}/mcp"), revision)
        tasks.start_soon(try_ours, sse(f"http://127.0.0.1:{port}/sse"), "2024-11-05")


# --- official clients -----------------------------------------------------------------------------------------


async def run(command: Sequence[str], **environment: str) -> Any:
    """Run a client, which must succeed; return its output."""
    done = await anyio.run_process(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return json.loads(done.stdout)


async def judged(revision: str, conversations: Sequence[Overheard]) -> None:
    """Validate the messages of our server against the schema."""
    report = Report("an official client", revision, "")
    report.works.append("tools")
    await valid(report, conversations)
    assert not report.failures, report.failures


def tapped(folder: Path) -> list[str]:
    """Return the command that runs the server and records its messages."""
    return [sys.executable, "-IS", str(HERE / "tap.py"), str(folder / "said"), *server()]


def said(folder: Path) -> Overheard:
    """Return the messages that `tap.py` recorded."""
    found = Overheard()
    for line in (folder / "said").read_bytes().splitlines():
        mark, _, message = line.partition(b" ")
        {b">": found.asked, b"<": found.said}.get(mark, []).append(message)
    return found


SPOKEN = {"1.6.0": "2024-11-05", "1.12.4": "2025-06-18", "1.23.3": "2025-11-25"}
"""Version of the official Python SDK -> its revision."""


def judge_dated(saw: dict[str, Any], revision: str) -> None:
    """Check the results of an official Python client."""
    assert (saw["revision"], saw["server"]) == (revision, "written-once")
    assert {name: saw[name] for name in expected(revision)} == expected(revision)
    assert saw["structured"]["words"]["note:///song"] == 3
    assert saw["rhyme said"] == "Raise the dead."
    assert (saw["unknown"], saw["read"], saw["completed"]) == (-32002, "La, la, la.", ["song"])
    if saw["elicits"]:
        assert saw["add said"] == "Added Tea."


@pytest.mark.full
@pytest.mark.parametrize(("version", "over"), list(zip(dated.VERSIONS, ["http", "stdio", "http"], strict=True)))
async def test_official_python_clients_of_older_versions_work(version: str, over: str, tmp_path: Path) -> None:
    place = str(dated.folder(version))
    script, revision = str(HERE / "dated_client.py"), SPOKEN[version]
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


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_the_installed_official_client_uses_the_newest_revision(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters, types
    from mcp.client.stdio import stdio_client

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"line": "Tea"})

    command, *arguments = tapped(tmp_path)
    way = stdio_client(StdioServerParameters(command=command, args=arguments))
    async with Client(way, elicitation_callback=elicit) as official:
        assert official.session.protocol_version == STATELESS
        for name, kinds in expected(STATELESS).items():
            if name != "rhyme":
                result = await official.call_tool(name, {})
                assert [type(block).__name__ for block in result.content] == kinds
        (added,) = (await official.call_tool("add", {})).content
        assert isinstance(added, types.TextContent)
        assert added.text == "Added Tea."
    await judged(STATELESS, [said(tmp_path)])


@pytest.mark.full
@pytest.mark.parametrize("version", list(dated.VERSIONS)[::2])
async def test_a_new_skeleton_serves_official_clients_of_older_versions(version: str, tmp_path: Path) -> None:
    started = execute(sys.executable, "-c", SCAFFOLD, "scaffold", "server", "weather", cwd=tmp_path)
    assert started.returncode == 0, started.stderr
    code = f"{BRIEF}\nanyio.run(main, {sys.executable!r}, {str(tmp_path / 'weather' / 'src')!r})"
    saw = await run([sys.executable, "-c", code], PYTHONPATH=str(dated.folder(version)))
    assert saw == [SPOKEN[version], "weather", "Hello, Ada!"]


SCAFFOLD = "from mcp_bindgen.cli import main; main()"
BRIEF = """
import json, os
import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main(python, source):
    server = StdioServerParameters(command=python, args=["-m", "weather"], env={**os.environ, "PYTHONPATH": source})
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        begun = await session.initialize()
        result = await session.call_tool("greet", {"name": "Ada"})
        print(json.dumps([str(begun.protocolVersion), begun.serverInfo.name, result.content[0].text]))
"""

TYPES = {
    "AudioContent": "audio",
    "EmbeddedResource": "resource",
    "ResourceLink": "resource_link",
    "TextContent": "text",
}
SPOKEN_BY = {"sdk": STATEFUL, "client": REVISIONS}
"""Package of a TypeScript SDK (see `node_client.mjs`) -> its revisions."""


def judge_node(saw: dict[str, Any], revision: str, conversations: Sequence[Overheard]) -> None:
    """Check the results of a TypeScript client and the progress that our server sent."""
    assert not [found for found in saw.values() if isinstance(found, dict) and "thrown" in found], saw
    assert saw["handshake"]["version"] == revision
    assert saw["handshake"]["server"]["name"] == "written-once"
    for name, kinds in expected(revision).items():
        assert saw[name]["error"] is False
        assert saw[name]["types"] == [TYPES[kind] for kind in kinds], name
    assert saw["rhyme"]["text"] == "I heard: Rhyme on bread."
    assert saw["structured"]["words"]["note:///song"] == 3
    assert saw["resources"] == ["song", "list"]
    assert saw["unknown"] in {-32602, *[-32002] * (revision != STATELESS)}  # the newer SDK has only the new code
    assert (saw["read"], saw["completed"]) == ("La, la, la.", ["song"])
    assert saw["prompt"] == "Shorten this: La, la, la."
    steps = [message for each in conversations for message in each.said if b'"notifications/progress"' in message]
    assert [json.loads(message)["params"]["progress"] for message in steps] == [1, 2]
    assert saw["progress"] == [1, 2][: len(saw["progress"])]  # the SDK loses progress that arrives with the result
    if revision >= "2025-06-18":
        assert saw["add"]["text"] == "Added Tea."


@pytest.mark.full
@pytest.mark.parametrize("package", SPOKEN_BY)
async def test_official_typescript_clients_work_in_each_of_their_revisions(package: str) -> None:
    needed()
    script = str(HERE / "node_client.mjs")

    async def talk(revision: str, port: int) -> None:
        over = "sse" if revision == "2024-11-05" else "http"
        eavesdropper = Eavesdropper(port)
        async with eavesdropper.listening() as near:
            address = f"http://127.0.0.1:{near}{PATHS[over]}"
            saw = await run([node(), script, package, revision, over, address], WRITTEN_ONCE="1")
        await judged(revision, eavesdropper.conversations())
        judge_node(saw, revision, eavesdropper.conversations())

    async with served() as port:
        for revision in SPOKEN_BY[package]:
            await talk(revision, port)


@pytest.mark.full
@pytest.mark.parametrize(
    ("package", "revision"), [("sdk", STATEFUL[-1]), ("client", STATEFUL[-1]), ("client", STATELESS)]
)
async def test_official_typescript_clients_work_over_stdio(package: str, revision: str, tmp_path: Path) -> None:
    needed()
    command = [node(), str(HERE / "node_client.mjs"), package, revision, "stdio", *tapped(tmp_path)]
    saw = await run(command, WRITTEN_ONCE="1")
    await judged(revision, [said(tmp_path)])
    judge_node(saw, revision, [said(tmp_path)])
