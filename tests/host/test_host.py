"""Hosts with several servers: merged lists, routing, failures at any time, and no processes left running."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_bindgen.app import App
from mcp_bindgen.app.serving import InProcess
from mcp_bindgen.host import BadConfig, Host, NotRouted, Offer, Status
from mcp_bindgen.host.configuration import entry as read_entry
from mcp_bindgen.host.watch import StderrTail
from mcp_bindgen.http import HttpApp
from mcp_bindgen.http.server.legacy_sse import SseApp
from mcp_bindgen.runtime import ConnectionClosed, ProtocolError
from mcp_bindgen.runtime.session.endpoint import Servers
from mcp_bindgen.runtime.session.targets import Served
from mcp_bindgen.v2025_11_25 import Client, Context, Server, methods
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.harness.checked_connections import refused, until
from tests.harness.commands import ROOT, save
from tests.harness.forks import PYTHON
from tests.harness.http_wires import listening
from tests.harness.processes import alive

SERVER = """
import json, os, subprocess, sys
import anyio
from mcp_bindgen.runtime import run
from mcp_bindgen.v2025_11_25 import Server, types as mcp

NAME, TOOLS = sys.argv[1], sys.argv[2].split(",")
sys.argv[1:] = sys.argv[3:]
CHILD = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
if "pids" in os.environ:
    with open(os.environ["pids"], "a") as file:
        file.write(f"{os.getpid()} {CHILD.pid}\\n")

class Tools(Server):
    info = mcp.Implementation(name=NAME, version="1")

    async def list_tools(self, params, ctx):
        page = int(params.cursor or 0)
        tools = [mcp.Tool(name=TOOLS[page], input_schema=mcp.ToolInputSchema())]
        more = str(page + 1) if page + 1 < len(TOOLS) else None
        return mcp.ListToolsResult(tools=tools, next_cursor=more)

    async def call_tool(self, params, ctx):
        if params.name == "die":
            os._exit(3)
        if params.name == "wait":
            await anyio.sleep(600)
        known = {"environment": dict(os.environ), "folder": os.getcwd()}
        return mcp.CallToolResult(content=[mcp.TextContent(text=f"{NAME}: {params.name}")], structured_content=known)

class More(Tools):
    async def list_prompts(self, params, ctx):
        return mcp.ListPromptsResult(prompts=[mcp.Prompt(name=f"{NAME} prompt")])

    async def list_resources(self, params, ctx):
        if "mute" in TOOLS:
            raise RuntimeError("this server fails")
        return mcp.ListResourcesResult(resources=[mcp.Resource(name=NAME, uri=f"test://{NAME}")])

run(More() if "more" in TOOLS or "mute" in TOOLS else Tools())
"""


@pytest.fixture
def entry(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Return a function that makes the configuration entry of a server from its name and its tools.

    Tests of processes override the command, because the fork server's stand-in has no child process.
    """
    script = tmp_path / "server.py"
    script.write_text(SERVER, "utf-8")

    def make(name: str, tools: str, *arguments: str, **more: Any) -> dict[str, Any]:
        environment = {"pids": str(tmp_path / "pids"), **more.pop("env", {})}
        return {"command": PYTHON, "args": [str(script), name, tools, *arguments], "env": environment, **more}

    return make


def program(code: str) -> dict[str, Any]:
    """Return the entry of a Python program."""
    return {"command": PYTHON, "args": ["-c", code]}


def processes(folder: Path) -> list[int]:
    """Return the process ids of all started servers and of their children."""
    return [int(pid) for pid in (folder / "pids").read_text().split()]


def pid_of(client: Client) -> int:
    """Return the process id of a server."""
    transport: Any = client.link.transport
    pid: int = transport.inner.process.pid
    return pid


def text(result: mcp.CallToolResult) -> str:
    """Return the text of a result."""
    [block] = result.content
    assert isinstance(block, mcp.TextContent)
    return block.text


def config(folder: Path, servers: object) -> Path:
    """Write a configuration file; return its path."""
    return save(folder / "mcp.json", {"mcpServers": servers})


Entry = Callable[..., dict[str, Any]]


# --- merged lists ---------------------------------------------------------------------------------------------


@pytest.mark.full
async def test_a_host_lists_all_pages_of_all_servers(entry: Entry, tmp_path: Path) -> None:
    servers = {"second": entry("two", "more,b,c"), "first": entry("one", "a,b")}
    async with Host.from_config(config(tmp_path, servers), client=Client) as host:
        tools: list[Offer[mcp.Tool]] = await host.tools()
        found = [f"{offer.server} {offer.item.name}" for offer in tools]
        assert found == ["second more", "second b", "second c", "first a", "first b"]
        assert [(offer.server, offer.item.name) for offer in await host.prompts()] == [("second", "two prompt")]
        assert [(offer.server, offer.item.uri) for offer in await host.resources()] == [("second", "test://two")]
        assert (list(host.clients), host.clients["first"].server_info.name) == (["second", "first"], "one")
        assert host.failures == {}
    assert host.clients == {}


@pytest.mark.full
async def test_a_server_that_cannot_list_is_left_out(entry: Entry, caplog: pytest.LogCaptureFixture) -> None:
    async with Host({"mute": entry("mute", "mute"), "fine": entry("fine", "more")}, Client) as host:
        assert [offer.server for offer in await host.resources()] == ["fine"]
        assert "mute does not list its resources: Internal error" in caplog.text
        assert (text(await host.call_tool("mute")), host.failures) == ("mute: mute", {})


# --- routing --------------------------------------------------------------------------------------------------


async def test_calls_are_routed_to_their_server(entry: Entry) -> None:
    async with Host({"one": entry("one", "a,shared"), "two": entry("two", "b,shared,die,last")}, Client) as host:
        assert (text(await host.call_tool("a")), text(await host.call_tool("b", {"x": 1}))) == ("one: a", "two: b")
        assert text(await host.call_tool("shared", server="one")) == "one: shared"
        assert text(await host.call_tool("not listed", server="one")) == "one: not listed"
        await refused(host.call_tool("shared"), NotRouted, "several servers offer a tool 'shared'; say which: one, two")
        await refused(host.call_tool("sharde"), NotRouted, "no server offers a tool 'sharde'; did you mean shared")
        await refused(host.call_tool("zzz"), NotRouted, "tool 'zzz'; there are: a, b, die, last, shared$")
        await refused(host.call_tool("b", server="tow"), NotRouted, "no server 'tow'; did you mean two")


@pytest.mark.parametrize("background", [False, True])
async def test_no_other_server_gets_the_call_of_a_server_that_died(entry: Entry, background: bool) -> None:
    servers = {"one": entry("one", "pay"), "two": entry("two", "pay,die")}
    async with Host(servers, Client, restarts=0, background=background) as host:
        assert len([status async for status in host.started()]) == 2
        await refused(host.call_tool("die"), ConnectionClosed)
        for _ in range(2):
            await refused(host.call_tool("pay"), NotRouted, "several servers offer a tool 'pay'; say which: one, two")
            assert [offer.server for offer in await host.tools()] == ["one"]
        await refused(host.call_tool("pay", server="two"), ConnectionClosed)
        await host.remove("two")
        assert text(await host.call_tool("pay")) == "one: pay"


async def test_a_tool_stays_ambiguous_when_a_server_cannot_list(monkeypatch: pytest.MonkeyPatch) -> None:
    apps = {name: App(name) for name in ("one", "two")}

    def pay() -> str:
        return "paid"

    for app in apps.values():
        app.tool(pay)
    async with Host(apps, Client) as host:
        await refused(host.call_tool("pay"), NotRouted, "several servers")

        async def fail(**_: object) -> None:
            raise ProtocolError(-32603, "Internal error")

        monkeypatch.setattr(host.clients["two"], "list_tools", fail)
        assert [offer.server for offer in await host.tools()] == ["one"]
        await refused(host.call_tool("pay"), NotRouted, "several servers offer a tool 'pay'; say which: one, two")


async def test_a_host_without_servers_offers_no_tools() -> None:
    async with Host[Client]({}, Client) as host:
        assert await host.tools() == []
        await refused(host.call_tool("a"), NotRouted, "no server offers a tool 'a'; there are none")
        await refused(host.call_tool("a", server="b"), NotRouted, "no server 'b'; there are none")


# --- failures -------------------------------------------------------------------------------------------------


@pytest.mark.full
async def test_servers_that_do_not_start_are_reported_as_failures(
    entry: Entry, caplog: pytest.LogCaptureFixture
) -> None:
    old = {"command": PYTHON, "args": [str(ROOT / "benchmarks" / "echo_server.py"), "2024-11-05"]}
    exits, talks = program("raise SystemExit(3)"), program("print('Welcome!')")
    servers = {"missing": {"command": "no-such-program"}, "old": old, "exits": exits, "talks": talks}
    async with Host({**servers, "fine": entry("fine", "a")}, Client) as host:
        assert list(host.clients) == ["old", "fine"]
        failures = {name: type(error) for name, error in host.failures.items()}
        assert failures == dict.fromkeys(("missing", "exits", "talks"), ConnectionClosed)
        assert str(host.failures["missing"]) == "no-such-program cannot be started: No such file or directory"
        assert text(await host.call_tool("a")) == "fine: a"
        missing = host.call_tool("a", server="missing")
        await refused(missing, ConnectionClosed, "the server 'missing' is not there: no-such-program cannot be")
        for name in host.failures:
            assert caplog.text.count(f"MCP server {name}: {host.failures[name]}") == 1


class Fine(Server):
    """Server inside this process, which is ready at once even on a busy machine."""

    info = mcp.Implementation(name="fine", version="1")

    async def list_tools(self, params: mcp.PaginatedRequestParams, ctx: Context) -> mcp.ListToolsResult:
        return mcp.ListToolsResult(tools=[mcp.Tool(name="a", input_schema=mcp.ToolInputSchema())])

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        return mcp.CallToolResult(content=[mcp.TextContent(text=f"fine: {params.name}")])


async def test_a_slow_server_is_stopped_and_does_not_block_other_servers(tmp_path: Path) -> None:
    slow = {"command": "sh", "args": ["-c", f"echo $$ >> {tmp_path / 'pids'}; cat > {os.devnull}"]}
    async with listening(HttpApp(Fine())) as port:
        servers = {"slow": slow, "fine": {"url": f"http://127.0.0.1:{port}/mcp"}}
        async with Host(servers, Client, start_timeout=2) as host:
            assert str(host.failures["slow"]) == "not ready within 2 s"
            assert isinstance(host.failures["slow"], TimeoutError)
            assert text(await host.call_tool("a")) == "fine: a"
    await until(lambda: not any(map(alive, processes(tmp_path))))


async def test_a_server_that_dies_during_a_call_becomes_a_failure(
    entry: Entry, caplog: pytest.LogCaptureFixture
) -> None:
    async with Host({"frail": entry("frail", "die,a"), "fine": entry("fine", "b")}, Client, restarts=0) as host:
        await refused(host.call_tool("die"), ConnectionClosed)
        assert (list(host.failures), list(host.clients)) == (["frail"], ["fine"])
        await refused(host.call_tool("a", server="frail"), ConnectionClosed, "the server 'frail' is not there")
        assert [offer.item.name for offer in await host.tools()] == ["b"]
        assert text(await host.call_tool("b")) == "fine: b"
        await refused(host.call_tool("die"), ConnectionClosed, "the server 'frail' is not there: ")
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.getMessage().split(":")[0] for record in warnings] == ["MCP server frail"]


@pytest.mark.full
async def test_a_server_that_dies_while_idle_becomes_a_failure(entry: Entry, tmp_path: Path) -> None:
    entry = partial(entry, command=sys.executable)
    async with Host({"frail": entry("frail", "a")}, Client) as host:
        server, child = processes(tmp_path)
        os.kill(server, 9)
        await until(lambda: host.failures)
        await until(lambda: not alive(child))
        assert host.clients == {}
        assert str(host.failures["frail"]) == "the server ended with signal SIGKILL"


@pytest.mark.full
async def test_a_server_that_died_is_started_again_by_the_next_call(entry: Entry, tmp_path: Path) -> None:
    entry = partial(entry, command=sys.executable)
    async with Host({"frail": entry("frail", "die,a,wait")}, Client, restart_pause=0.01) as host:
        for round_ in range(5):
            lost: list[Exception] = []
            async with anyio.create_task_group() as tasks:

                async def wait(lost: list[Exception] = lost) -> None:
                    lost.append(await refused(host.call_tool("wait"), ConnectionClosed))

                tasks.start_soon(wait)
                await until(lambda: host.clients["frail"].link.connection.pending)
                await refused(host.call_tool("die"), ConnectionClosed)
            assert lost, "what was under way fails, and is not sent again"
            assert list(host.failures) == ["frail"]
            both: list[str] = []

            async def call(both: list[str] = both) -> None:
                both.append(text(await host.call_tool("a")))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(call)
                tasks.start_soon(call)
            assert (both, host.failures) == (["frail: a"] * 2, {})
            assert len(processes(tmp_path)) == 2 * (round_ + 2), "one start serves both"
        assert [offer.item.name for offer in await host.tools()] == ["die", "a", "wait"]
    await until(lambda: not any(map(alive, processes(tmp_path))))


@pytest.mark.full
async def test_a_server_that_keeps_dying_is_given_up(entry: Entry, tmp_path: Path) -> None:
    async with Host({"frail": entry("frail", "die")}, Client, restarts=2, restart_pause=0.2) as host:
        begun = anyio.current_time()
        for _ in range(3):
            await refused(host.call_tool("die"), ConnectionClosed)
        assert anyio.current_time() - begun > 0.6, "the pause grows"
        await refused(host.call_tool("die", server="frail"), ConnectionClosed, "the server 'frail' is not there")
        assert len(processes(tmp_path)) == 6
        assert await host.tools() == []


@pytest.mark.full
async def test_a_cancelled_call_does_not_stop_a_restart(entry: Entry, tmp_path: Path) -> None:
    async with Host({"frail": entry("frail", "die,a")}, Client, restarts=1, restart_pause=0) as host:
        await refused(host.call_tool("die"), ConnectionClosed)
        for _ in range(3):
            with anyio.move_on_after(0.05):
                await host.call_tool("a")
        assert (text(await host.call_tool("a")), len(processes(tmp_path))) == ("frail: a", 4)


@pytest.mark.full
async def test_closing_the_host_ends_calls_that_wait_for_a_restart(entry: Entry) -> None:
    host = Host({"frail": entry("frail", "die,a")}, Client, restart_pause=600)
    async with anyio.create_task_group() as tasks, host:
        await refused(host.call_tool("die"), ConnectionClosed)

        async def call() -> None:
            await refused(host.call_tool("a"), (ConnectionClosed, NotRouted))

        tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()


@pytest.mark.full
async def test_calls_to_an_unknown_tool_do_not_list_the_tools_each_time(entry: Entry) -> None:
    async with Host({"one": entry("one", "a,b")}, Client, relist_after=0.3) as host:
        client = host.clients["one"]

        async def listed() -> int:
            before = client.link.connection.request(methods.PING, None)[0].id
            await refused(host.call_tool("zzz"), NotRouted, "no server offers a tool 'zzz'")
            return client.link.connection.request(methods.PING, None)[0].id - before - 1

        assert await listed() == 2, "two pages"
        assert [await listed() for _ in range(3)] == [0, 0, 0]
        client.link.connection.changes += 1
        assert [await listed(), await listed()] == [2, 0]
        await anyio.sleep(0.3)
        assert [await listed(), await listed()] == [2, 0]


@pytest.mark.full
async def test_a_tool_error_is_not_a_failure_of_the_server(entry: Entry) -> None:
    weather = {"command": PYTHON, "args": [str(ROOT / "examples" / "weather_server.py")]}
    async with Host({"weather": weather}, Client) as host:
        await refused(host.call_tool("nothing", server="weather"), ProtocolError, "no tool")
        assert host.failures == {}
        assert list(host.clients) == ["weather"]


# --- cleanup --------------------------------------------------------------------------------------------------


@pytest.mark.full
async def test_closing_the_host_leaves_no_process_running(entry: Entry, tmp_path: Path) -> None:
    entry = partial(entry, command=sys.executable)
    async with Host({"one": entry("one", "a"), "two": entry("two", "b")}, Client) as host:
        assert len(host.clients) == 2
        pids = processes(tmp_path)
        assert len(pids) == 4
        assert all(map(alive, pids))
    await until(lambda: not any(map(alive, pids)))  # killed processes take a moment to disappear
    assert host.failures == {}


@pytest.mark.full
async def test_an_error_in_the_with_block_is_raised_unchanged(entry: Entry, tmp_path: Path) -> None:
    entry = partial(entry, command=sys.executable)
    with pytest.raises(LookupError, match="mine"):
        async with Host({"one": entry("one", "a"), "two": entry("two", "b")}, Client):
            raise LookupError("mine")
    await until(lambda: not any(map(alive, processes(tmp_path))))


@pytest.mark.full
async def test_a_cancelled_call_leaves_its_server_usable(entry: Entry, tmp_path: Path) -> None:
    async with Host({"one": entry("one", "wait,a")}, Client) as host:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(host.call_tool, "wait")
                await until(lambda: host.clients["one"].link.connection.pending)
                scope.cancel()
        assert scope.cancelled_caught
        assert (text(await host.call_tool("a")), host.failures) == ("one: a", {})


@pytest.mark.full
async def test_a_host_that_is_cancelled_stops_its_servers(entry: Entry, tmp_path: Path) -> None:
    entry = partial(entry, command=sys.executable)
    with anyio.CancelScope() as scope:
        async with Host({"one": entry("one", "wait")}, Client) as host, anyio.create_task_group() as tasks:
            tasks.start_soon(host.call_tool, "wait")
            await until(lambda: host.clients["one"].link.connection.pending)
            scope.cancel()
    assert scope.cancelled_caught
    await until(lambda: not any(map(alive, processes(tmp_path))))


# --- configuration --------------------------------------------------------------------------------------------


@pytest.mark.full
async def test_an_entry_sets_environment_and_folder_and_unknown_members_are_ignored(
    entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    monkeypatch.setenv("UNRELATED", "x")
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    env = {"TOKEN": "a ${SECRET} and ${SECRET}", "PLAIN": "$SECRET {SECRET}"}
    made = entry("one", "a", env=env, cwd=str(folder), disabled=False, type="stdio")
    async with Host.from_config(config(tmp_path, {"one": made}), client=Client) as host:
        known = (await host.call_tool("a")).structured_content
    assert known is not None
    assert (known["environment"]["TOKEN"], known["environment"]["PLAIN"]) == ("a s3cret and s3cret", "$SECRET {SECRET}")
    assert "UNRELATED" not in known["environment"]
    assert known["environment"]["MCP_BINDGEN_HOME"] == os.environ["MCP_BINDGEN_HOME"]  # to find the same bindings
    assert known["folder"] == str(folder.resolve())


@pytest.mark.full
async def test_a_host_connects_to_a_server_by_url(entry: Entry) -> None:
    async with listening(SseApp(Fine())) as port:
        far = {"url": f"http://127.0.0.1:{port}/sse", "headers": {"x-test": "1"}}
        servers = {"far": far, "off": {"url": "http://127.0.0.1:9/sse"}, "near": entry("near", "b")}
        async with Host(servers, Client) as host:
            assert (text(await host.call_tool("a")), text(await host.call_tool("b"))) == ("fine: a", "near: b")
            assert list(host.failures) == ["off"]


X: dict[str, Any] = {"command": "a"}
UNSET = {"fine": X, "x": {**X, "env": {"B": "${NOT_SET_ANYWHERE}"}}}
BAD: list[tuple[object, str]] = [
    ("{", "not JSON: "),
    ("[" * 100_000, "nested too deeply"),
    ("[]", '"mcpServers" must be there'),
    ({}, '"mcpServers" must be there'),
    ({"mcpServers": []}, '"mcpServers" must be there'),
    ({"mcpServers": {"x": "npx"}}, "server 'x': an entry must be an object"),
    ({"mcpServers": {"x": {}}}, 'server \'x\': it needs either "command" or "url"$'),
    ({"mcpServers": {"x": {**X, "url": "http://b"}}}, "server 'x': .*, not both$"),
    ({"mcpServers": {"x": {"command": ["a"]}}}, "server 'x': \"command\" must be text"),
    ({"mcpServers": {"x": {"command": ""}}}, "server 'x': \"command\" must be text"),
    ({"mcpServers": {"x": {"url": "ftp://b"}}}, "server 'x': no transport for ftp:; installed: http:, https:"),
    ({"mcpServers": {"x": {**X, "args": "b"}}}, "server 'x': \"args\" must be a list of texts"),
    ({"mcpServers": {"x": {**X, "args": [1]}}}, "server 'x': \"args\" must be a list of texts"),
    ({"mcpServers": {"x": {**X, "env": ["B=1"]}}}, "server 'x': \"env\" must be an object with texts"),
    ({"mcpServers": {"x": {**X, "env": {"B": 1}}}}, "server 'x': \"env\" must be an object with texts"),
    ({"mcpServers": {"x": {**X, "cwd": 1}}}, "server 'x': \"cwd\" must be text"),
    (
        {"servers": {"x": {**X, "args": ["${input:t}"]}}},
        "server 'x': \"args\" has .*, which only a host fills in; write",
    ),
    ({"mcpServers": UNSET}, "server 'x': \"env\" needs the environment variable NOT_SET_ANYWHERE, which is not set"),
]


@pytest.mark.parametrize(("document", "message"), BAD, ids=lambda part: part if isinstance(part, str) else "")
async def test_a_bad_configuration_is_reported_in_one_line(document: object, message: str, tmp_path: Path) -> None:
    """An invalid file fails the host; an invalid entry fails only its own server."""
    path = tmp_path / "mcp.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
    found: Exception | None = None
    try:
        async with Host.from_config(path, client=Client) as host:
            found = host.failures["x"]
            await refused(host.call_tool("a", server="x"), ConnectionClosed, "the server 'x' is not there")
    except BadConfig as error:
        found = error
    assert isinstance(found, BadConfig)
    assert re.search(message, str(found))
    assert str(found).startswith(f"{path}: ")
    assert "\n" not in str(found)


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {}}',
        '{"servers": {}, /* as in VS Code, */} // mine',
        '{"mcpServers": {}}' + "/* " * 100_000,
        '{"servers": {}, "a": ["//\\"", "/*", 1 // ]\n, /**/ // }\n ] /* , */ }',
        '{"servers": {}, "a": [' + ",/**/".join("1" * 5000) + "]}",
    ],
    ids=["plain", "vscode", "unfinished", "comments", "many"],
)
async def test_a_configuration_may_begin_with_a_byte_order_mark_and_have_comments(text: str, tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(text, "utf-8-sig")
    async with Host.from_config(tmp_path / "mcp.json", client=Client) as host:
        assert not host.failures


def test_a_missing_configuration_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"nope\.json: No such file or directory"):
        Host.from_config(tmp_path / "nope.json", client=Client)


BROKEN = {
    "unset": {"command": PYTHON, "args": ["${NOT_SET_ANYWHERE}"]},
    "hanging": program("import time; time.sleep(600)"),
    "crashing": program("import sys; sys.exit('no key: set ACME_KEY')"),
    "wrong": {"command": "no-such-program"},
}
"""One entry for each way in which servers fail to start."""


# --- many servers ---------------------------------------------------------------------------------------------


@pytest.mark.full
async def test_four_broken_servers_do_not_affect_sixteen_working_servers(entry: Entry) -> None:
    """Sixteen servers are ready while one server hangs; a killed server is restarted."""
    good = {f"good{number}": entry(f"good{number}", f"tool{number}") for number in range(16)}
    async with Host({**BROKEN, **good}, Client, start_timeout=45, restart_pause=0.05, background=True) as host:
        assert host.clients == {}, "nobody waits"
        answered: list[str] = []
        async for status in host.started():
            if status.state == "ready":
                answered.append(text(await host.call_tool("tool" + status.name[4:], server=status.name)))
            if len(answered) == 16:
                break
        assert host.status("hanging").state == "starting", "sixteen answered before it had its time"
        assert sorted(answered) == sorted(f"good{number}: tool{number}" for number in range(16))
        assert {offer.item.name for offer in await host.tools()} == {f"tool{number}" for number in range(16)}
        await until(lambda: len(host.failures) == 3)
        assert "needs the environment variable NOT_SET_ANYWHERE" in str(host.failures["unset"])
        assert str(host.failures["crashing"]).endswith("its stderr ends: no key: set ACME_KEY")
        assert str(host.failures["wrong"]) == "no-such-program cannot be started: No such file or directory"
        with pytest.raises(ConnectionClosed, match=r"'crashing' is not there: .*no key: set ACME_KEY"):
            await host.call_tool("x", server="crashing")
        killed = host.clients["good3"]
        os.kill(pid_of(killed), 9)
        await until(lambda: host.clients.get("good3") not in (None, killed))
        assert text(await host.call_tool("tool3")) == "good3: tool3"
        assert "tool3" in {offer.item.name for offer in await host.tools()}


async def test_the_failure_of_a_hanging_server_includes_the_end_of_its_stderr() -> None:
    shout = "for n in range(9): print('line', n, '\\x1b[2J', file=sys.stderr, flush=True)"
    async with Host({"slow": program(f"import sys, time\n{shout}\ntime.sleep(600)")}, Client, start_timeout=1) as host:
        said = str(host.failures["slow"])
    assert said.startswith("not ready within 1 s; its stderr ends: line 6 ")
    assert said.count("line") == 3
    assert said.isprintable()


async def test_a_host_can_run_again_and_forgets_earlier_failures() -> None:
    starts = 0

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        nonlocal starts
        starts += 1
        if starts == 1:
            raise OSError("no database")
        yield

    host = Host({"db": App("db", lifespan=lifespan)}, Client)
    async with host:
        assert str(host.failures["db"]) == "no database"
    async with host:
        assert (host.status("db"), dict(host.failures)) == (Status("db", "ready"), {})
    await refused(host.add("late", App("late")), ValueError, "the host does not run")
    assert not host.clients


@pytest.mark.full
async def test_servers_can_be_added_and_removed_while_the_host_runs(entry: Entry) -> None:
    off = {**entry("off", "z"), "disabled": True}
    async with Host({"one": entry("one", "a"), "off": off}, Client, background=True) as host:
        seen = [(status.name, status.state) async for status in host.started()]
        assert sorted(seen) == [("off", "disabled"), ("one", "ready")]
        await refused(host.call_tool("z", server="off"), NotRouted, "the server 'off' is not there: it is disabled")
        await host.add("two", entry("two", "b"))
        await refused(host.add("two", entry("two", "b")), ValueError, "there is a server 'two' already")
        await refused(host.add("bad", {}), BadConfig, "needs either")
        assert text(await host.call_tool("b", server="two")) == "two: b", "who names it waits for it"
        assert text(await host.call_tool("a")) == "one: a"
        pid = pid_of(host.clients["one"])
        await host.remove("one")
        await until(lambda: not alive(pid))
        assert [offer.item.name for offer in await host.tools()] == ["b"]
        await refused(host.call_tool("a", server="one"), NotRouted, "no server 'one'; there are: off, two")
        await host.add("one", entry("one", "c"))
        assert [status.name async for status in host.started() if status.name == "one"] == ["one"]
        assert text(await host.call_tool("c", server="one")) == "one: c"


@pytest.mark.full
async def test_a_reused_server_name_has_only_one_process(entry: Entry, tmp_path: Path) -> None:
    entry = partial(entry, command=sys.executable)
    async with Host({"one": entry("one", "die")}, Client, background=True, restart_pause=0.3) as host:
        with pytest.raises(ConnectionClosed):
            await host.call_tool("die", server="one")  # this server is restarted after a moment, unless it is removed
        await host.remove("one")
        await host.add("one", entry("one", "a"))
        await host.add("two", entry("two", "b"))
        await host.remove("two")
        await host.add("two", entry("two", "c"))
        assert text(await host.call_tool("a", server="one")) == "one: a"
        assert text(await host.call_tool("c", server="two")) == "two: c"
        await anyio.sleep(0.6)
        now = {pid_of(host.clients[name]) for name in ("one", "two")}
        assert ({pid for pid in processes(tmp_path)[::2] if alive(pid)}, len(processes(tmp_path))) == (now, 6)


async def test_the_stderr_of_a_server_cannot_forge_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    hostile = program(r"import sys, time; sys.stderr.write('\x1b[2J\r' + 'x' * 50_000 + '\n'); time.sleep(60)")
    async with Host({"hostile": hostile}, Client, background=True):
        await until(lambda: any(record.name == "mcp_bindgen.servers" for record in caplog.records))
    said = [record.getMessage() for record in caplog.records if record.name == "mcp_bindgen.servers"]
    assert said[0].startswith(r"hostile: \x1b[2J\r")
    assert len(said[0]) < 3000


@pytest.mark.full
async def test_a_background_server_that_keeps_dying_is_given_up(entry: Entry, tmp_path: Path) -> None:
    changes: list[str] = []
    async with Host({"frail": entry("frail", "die")}, Client, restarts=2, restart_pause=0.05, background=True) as host:
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                async for status in host.changes():
                    changes.append(status.state)
                    if changes.count("failed") == 3:
                        return

            tasks.start_soon(watch)
            for _ in range(3):
                await refused(host.call_tool("die", server="frail"), ConnectionClosed)
        assert len(processes(tmp_path)) == 6
        assert changes.count("ready") == 3
        await refused(host.call_tool("die", server="frail"), ConnectionClosed, "the server 'frail' is not there")


async def first(changes: AsyncIterator[Status], state: str, times: int) -> AsyncIterator[Status]:
    """Yield changes until the state has occurred the given number of times."""
    async for status in changes:
        yield status
        times -= status.state == state
        if not times:
            return


async def test_a_failure_is_known_until_the_server_is_ready_again(entry: Entry) -> None:
    async with Host({"frail": entry("frail", "die")}, Client, background=True, restart_pause=0.01) as host:
        assert [status.state async for status in host.started()] == ["ready"]
        seen: list[tuple[str, bool]] = []

        async def watch() -> None:
            async for status in host.changes():
                seen.append((status.state, status.error is not None))
                assert (status.error, host.status("frail")) == (host.failures.get("frail"), status)
                if len(seen) == 4:
                    return

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await until(lambda: seen)
            await refused(host.call_tool("die"), ConnectionClosed)
    assert seen == [("ready", False), ("failed", True), ("starting", True), ("ready", False)]


async def test_the_stderr_of_a_server_is_read_without_add_reader(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def add_reader(*_: object) -> None:
        raise NotImplementedError

    caplog.set_level("INFO")
    monkeypatch.setattr(asyncio.get_running_loop(), "add_reader", add_reader)
    with StderrTail("odd") as tail:
        os.write(tail.writer, b"no such file\n")
        await until(lambda: tail.text() == "no such file\n")
    await until(lambda: "odd: no such file" in caplog.text)


@pytest.mark.full
async def test_a_server_that_crashes_at_its_first_start_is_restarted_in_the_background(tmp_path: Path) -> None:
    """The pause before each restart grows, and the missing tool is available in the end."""
    code = (
        f"if not __import__('os').path.exists({str(tmp_path / 'ready')!r}): raise SystemExit('not yet')\n"
        "from mcp_bindgen.app import App, run\n"
        "app = App('late')\n"
        "@app.tool\n"
        "def hello() -> str: return 'hello'\n"
        "run(app)"
    )
    late = {"late": program(code)}
    async with Host(late, Client, background=True, restart_pause=0.2) as host:
        seen = [(status.state, str(status.error)) async for status in first(host.changes(), "failed", 2)]
        reason = "the server ended with exit code 1; its stderr ends: not yet"
        assert seen[-3:] == [("failed", reason), ("starting", reason), ("failed", reason)]
        (tmp_path / "ready").touch()
        *later, last = [status async for status in first(host.changes(), "ready", 1)]
        assert {str(status.error) for status in later} == {reason}
        assert last == Status("late", "ready")
        assert text(await host.call_tool("hello")) == "hello"
    (tmp_path / "ready").unlink()
    async with Host(late, Client, background=True, restarts=1, restart_pause=0.05) as host:
        assert "ready" not in [status.state async for status in first(host.changes(), "failed", 2)]
        await anyio.sleep(0.3)
        await refused(host.call_tool("hello", server="late"), ConnectionClosed, "its stderr ends: not yet")


def test_variables_in_entries_are_expanded_and_may_have_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "/opt")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("UNSET", raising=False)
    arguments = ["${env:PLACE}", "${UNSET:-a b}", "${EMPTY:-c}", "$PLACE", "${UNSET:-}"]
    more = {"env": {"A": "${UNSET:-x}${PLACE}"}, "cwd": "${PLACE}"}
    found = read_entry("x", {"command": "${PLACE}/run", "args": arguments, **more})
    assert (found.command, found.cwd, found.env) == ("/opt/run", "/opt", {"A": "x/opt"})
    assert found.args == ("/opt", "a b", "c", "$PLACE", "")
    assert read_entry("x", {"url": "http://${UNSET:-localhost}/mcp"}).url == "http://localhost/mcp"
    with pytest.raises(BadConfig, match="server 'x': \"args\" needs the environment variable UNSET"):
        read_entry("x", {"command": "a", "args": ["${UNSET}"]})
    with pytest.raises(BadConfig, match='"disabled" must be true or false'):
        read_entry("x", {"command": "a", "disabled": "yes"})


class Counting(Server):
    """Server with one tool that counts the lists and the calls."""

    info = mcp.Implementation(name="counting", version="1")

    def __init__(self) -> None:
        self.lists = self.calls = 0

    async def list_tools(self, params: Any, ctx: Context) -> mcp.ListToolsResult:
        self.lists += 1
        return mcp.ListToolsResult(tools=[mcp.Tool(name="count", input_schema=mcp.ToolInputSchema())])

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> mcp.CallToolResult:
        self.calls += 1
        return mcp.CallToolResult(content=[])


class Here(InProcess):
    """Target that serves one server in this process."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def served(self) -> Served:
        return Servers(self.server)


async def test_concurrent_calls_of_a_new_tool_list_the_tools_once() -> None:
    server = Counting()
    async with Host({"counting": Here(server)}, Client) as servers, anyio.create_task_group() as calls:
        for _ in range(4):
            calls.start_soon(servers.call_tool, "count")
    assert (server.calls, server.lists) == (4, 1)
