"""The examples run, are short, and print the expected output."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.app import Context
from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.runtime.transports.stdio import stdio
from tests.harness.checked_connections import bounded
from tests.harness.commands import ROOT, execute
from tests.harness.forks import PYTHON
from tests.harness.issuer import Issuer
from tests.harness.processes import free_port, process
from tests.harness.protected import Protected, called, said

EXAMPLES = ROOT / "examples"
SHORT = ["mounted.py", "two_servers_host.py", "unix_socket.py", "weather_client.py", "weather_server.py"]


def run(name: str, folder: Path) -> list[str]:
    """Run an example in a folder; return its output lines."""
    done = execute(PYTHON, "-W", "error", EXAMPLES / name, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def imported(name: str) -> Any:
    """Return the module of an example."""
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", SHORT)
def test_examples_are_short(name: str) -> None:
    lines = (EXAMPLES / name).read_text("utf-8").splitlines()
    assert len([line for line in lines if line.strip()]) < 60


@pytest.mark.full
def test_the_weather_client_prints_the_expected_output(tmp_path: Path) -> None:
    assert run("weather_client.py", tmp_path) == [
        "connected to weather 1.0.0",
        "tool forecast: Tells the sky over a city, day by day.",
        "tool await_sun: Answers as soon as the sun comes out, which may take an hour.",
        "resource weather://cities: 1 part",
        "calling forecast",
        "  1/3 day 1: rain",
        "  2/3 day 2: more rain",
        "  3/3 day 3: sun",
        "Bergen: rain, more rain, sun",
    ]


@pytest.mark.full
@pytest.mark.parametrize("package", [v2025_11_25, v2026_07_28])
async def test_the_notes_example_is_a_server_of_at_most_64_lines(package: Any) -> None:
    assert len((EXAMPLES / "notes.py").read_text("utf-8").splitlines()) <= 64
    asked: list[str] = []

    class Asked(package.Client):  # type: ignore[misc]
        def on_elicit(self, params: Any, ctx: Any) -> Any:
            asked.append(params.message)
            return package.types.ElicitResult(action="accept", content={"answer": len(asked) > 1})

    async with (
        stdio(sys.executable, str(EXAMPLES / "notes.py"), env={**os.environ}) as transport,
        Asked.connect(transport) as client,
    ):
        await client.call_tool("add", {"note": {"id": "milk", "text": "Buy milk", "tags": ["shop"]}})
        read = (await client.call_tool("read", {"id": "milk"})).structured_content
        assert read == {"id": "milk", "text": "Buy milk", "tags": ["shop"]}
        content = (await client.read_resource("note://milk")).contents[0]
        assert json.loads(content.text) == read
        missing = await client.call_tool("read", {"id": "beer"})
        assert (missing.is_error, missing.content[0].text) == (True, "there is no note 'beer'")
        with pytest.raises(ProtocolError, match="there is no note 'beer'"):
            await client.get_prompt("summarize", {"id": "beer"})
        deleted = [(await client.call_tool("delete", {"id": "milk"})).structured_content for _ in range(2)]
        assert deleted == [{"result": False}, {"result": True}]
    assert asked == ["Delete milk?"] * 2


def test_the_line_counts_in_the_tutorial_match_the_files() -> None:
    page = (ROOT / "docs" / "tutorials" / "python-first.md").read_text("utf-8")
    lines = next(line for line in page.splitlines() if line.startswith("| lines of its one file |"))
    files = [EXAMPLES / "notes.py", *(ROOT / "benchmarks/peers" / f"notes_{name}.py" for name in ("mcp", "fastmcp"))]
    settings = ("# mypy:", "# pyright:")
    counts = [sum(not line.startswith(settings) for line in file.read_text("utf-8").splitlines()) for file in files]
    assert [int(cell) for cell in lines.split("|")[2:5]] == counts


@pytest.mark.full
def test_the_weather_server_exits_without_a_client(tmp_path: Path) -> None:
    assert run("weather_server.py", tmp_path) == []


@pytest.mark.full
def test_the_host_example_uses_two_servers_and_reports_a_failed_server(tmp_path: Path) -> None:
    failed = "failed: broken: there-is-no-such-program cannot be started: No such file or directory"
    offers = ["weather offers forecast", "weather offers await_sun", "echo offers echo"]
    said = ["running: weather, echo", failed, *offers, "Oslo: snow, clouds, sun", "hello"]
    assert run("two_servers_host.py", tmp_path) == said


def test_the_unix_socket_example_uses_a_custom_transport(tmp_path: Path) -> None:
    assert run("unix_socket.py", tmp_path) == ["tools: upper", "HELLO"]


@pytest.mark.full
def test_the_mounted_example_serves_inside_a_web_application(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-W", "error", "-m", "uvicorn", "--app-dir", EXAMPLES, "mounted:app", "--port", port]

    @bounded()
    async def body() -> None:
        for bindings in (v2025_11_25, v2026_07_28):
            async with bindings.Client.connect(f"{url}/mcp") as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == ["sign"]
                (block,) = (await client.call_tool("sign", {"name": client.revision})).content
                assert block.model_dump()["text"] == f"Welcome, {client.revision}!"
                assert not (await client.call_tool("sign", {"name": "x", "more": 1})).is_error
        async with httpx2.AsyncClient(timeout=60) as browser:
            guests = await browser.get(f"{url}/guests")
            assert guests.json() == ["the host", "2025-11-25", "x", "2026-07-28", "x"]
            assert (await browser.get(f"{url}/elsewhere")).status_code == 404

    with process(command, port, tmp_path / "log") as server:
        body()
        server.terminate()
        server.wait(10)
    assert "Application shutdown complete" in (tmp_path / "log").read_text("utf-8")


def test_the_conversation_example_prints_the_expected_messages(tmp_path: Path) -> None:
    lines = run("conversation.py", tmp_path)
    assert max(map(len, lines)) <= 110
    directions = "".join(line[2] for line in lines if line.startswith(("  -> ", "  <- ")))
    assert directions == "-<--<-<<<---<"
    transcript = "\n".join(lines)
    for expected in (
        '-> {"jsonrpc":"2.0","id":1,"method":"initialize"',
        '<- {"jsonrpc":"2.0","method":"notifications/progress"',
        '-> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"timed out","requestId":4}}',
        '<- {"jsonrpc":"2.0","id":5,"error":{"code":-32602',
        "2 of 2: day 2: clouds",
    ):
        assert expected in transcript, expected
    assert re.search("^     RequestTimeout: tools/call", transcript, re.MULTILINE)
    assert re.search("^     ProtocolError: .*no tool 'nothing'", transcript, re.MULTILINE)


@pytest.mark.full
def test_the_protected_server_example_checks_tokens_and_scopes(tmp_path: Path) -> None:
    port = free_port()
    with Issuer().listening() as issuer:
        command = [sys.executable, "-W", "error", EXAMPLES / "protected_server.py", "--port", port]
        with process([*command, "--issuer", issuer.url], port, tmp_path / "log"):
            server = Protected(f"http://127.0.0.1:{port}/mcp")
            reader, writer = (issuer.token(server.url, scope=f"mcp:{one}") for one in ("read", "write"))
            with server.client:
                assert server.call("whoami").status_code == 401
                assert said(server.call("whoami", token=reader)) == "alice"
                assert server.call("delete", token=reader).status_code == 403
                for revision in ("2025-03-26", "2025-06-18", "2025-11-25"):
                    session = server.session(writer, revision)
                    assert said(server.post(called("delete"), token=writer, headers=session)) == "deleted"
                assert server.client.get(f"{server.origin}/sse").status_code == 401


async def test_the_middleware_example_retries_limits_and_logs_calls(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "middleware")
    module = imported("middleware")
    lengths = [len(inspect.getsource(one).splitlines()) for one in module.app.middlewares]
    assert len(lengths) == 5
    assert max(lengths) <= 18
    connection: Any = v2026_07_28.Client.connect(module.app)
    async with connection as client:
        for _ in range(2):
            assert (await client.call_tool("forecast", {"city": "Oslo"})).content[0].text == "sun over Oslo"
        assert module.attempts == {"Oslo": 2}
        for _ in range(98):
            await client.call_tool("forecast", {"city": "Oslo"})
        assert (await client.call_tool("forecast", {"city": "Oslo"})).content[0].text.startswith("Too many calls")
    assert "forecast again: the weather service hung up" in caplog.text
    assert "tool forecast by - failed: Too many calls" in caplog.text
    assert module.seconds["forecast"] > 0


async def test_the_rate_limit_counts_a_call_that_asks_once_and_invented_answers_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "middleware")
    module = imported("middleware")

    class Home(v2026_07_28.Client):
        async def on_elicit(self, params: v2026_07_28.types.ElicitRequestParams, ctx: Any) -> Any:
            return v2026_07_28.types.ElicitResult(action="accept", content={"answer": True})

    async def remove(ctx: Context[Any]) -> str:
        """Remove a note."""
        return f"removed {await ctx.ask('Sure?', bool)}"

    module.app.add_tool(remove)
    recent = module.calls[None]
    invented: Any = {"Sure?": v2026_07_28.types.ElicitResult(action="accept", content={"answer": True})}
    async with Home.connect(module.app) as client:
        for count in (1, 2, 3):
            removed: Any = await client.call_tool("remove")
            assert removed.content[0].text == "removed True"
            assert len(recent) == count
        for count in (4, 5):
            await client.call_tool("remove", input_responses=invented)
            assert len(recent) == count
        recent.extend([recent[-1]] * 95)
        assert (await client.call_tool("remove", input_responses=invented)).is_error
    refused = "tool remove by - failed: Too many calls; wait a minute."
    assert caplog.messages == [*["tool remove by -"] * 5, refused]


@pytest.mark.full
async def test_the_library_example_serves_its_tools_resources_and_prompts(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "library")
    module = imported("library")
    connection: Any = v2026_07_28.Client.connect(module.app)
    async with connection as client:
        assert len([tool async for tool in client.iter_tools()]) == 8
        assert len([one async for one in client.iter_resources()]) == 3
        assert len([one async for one in client.iter_resource_templates()]) == 2
        assert len([one async for one in client.iter_prompts()]) == 2
        found = await client.call_tool("find", {"words": "austen"})
        assert [book["title"] for book in found.structured_content["result"]] == ["Emma", "Persuasion"]
        await client.call_tool("add", {"book": {"title": "Ulysses", "author": "Joyce"}})
        assert (await client.read_resource("library://count")).contents[0].text == "4"
        assert "Joyce" in (await client.read_resource("book://Ulysses")).contents[0].text
        await client.call_tool("borrow", {"title": "Emma"})
        assert (await client.call_tool("cart")).structured_content == {"result": ["Emma"]}
        assert (await client.call_tool("borrow", {"title": "?"})).content[0].text == "there is no book '?'"
        assert (await client.call_tool("stocktake")).structured_content == {"result": 4}
        assert (await client.call_tool("shop_order", {"title": "Emma"})).content[0].text == "ordered Emma for 400 cents"
        ref = v2026_07_28.types.PromptReference(name="summarize")
        argument = v2026_07_28.types.CompleteRequestParamsArgument(name="title", value="F")
        assert (await client.complete(ref, argument)).completion.values == ["Faust"]
    assert "tool shop_order by None" in caplog.text
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(module.web), base_url="http://127.0.0.1:8000") as http:
        assert (await http.get("/health")).json() == {"status": "ok"}
        assert (await http.post("/mcp", json={})).status_code == 401


@pytest.mark.full
def test_the_entry_of_the_public_benchmark_gives_the_answers_that_the_benchmark_checks() -> None:
    script = ROOT / "benchmarks/tm_benchmark.py"
    done = execute(PYTHON, script, "--only", "ours", "--rounds", "1", "--users", "2", "--sessions", "2")
    assert done.returncode == 0, done.stderr
    assert {line.split("  ")[0] for line in done.stdout.splitlines()} >= {"ours", "ours, sessions"}


@pytest.mark.full
def test_the_support_desk_passes_its_tests_in_few_lines(tmp_path: Path) -> None:
    folder = EXAMPLES / "support_desk"
    files = [folder / "desk.py", folder / "test_desk.py", folder / "Dockerfile"]
    assert sum(bool(line.strip()) for file in files for line in file.read_text("utf-8").splitlines()) <= 230
    for file in files:
        shutil.copy(file, tmp_path)
    done = execute(PYTHON, "-m", "pytest", "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
