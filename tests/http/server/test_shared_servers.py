"""One server object behind several endpoints: policies, limits and the choice of sessions belong to each endpoint."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.auth import ResourceServer, StaticTokens
from mcp_bindgen.extensions.tasks import TaskLimits, Tasks
from mcp_bindgen.extensions.tasks import task as as_task
from mcp_bindgen.http import HttpApp, HttpLimits
from mcp_bindgen.http.server.legacy_sse import SseApp
from mcp_bindgen.runtime import Identity, RequestMethod, connect, handles, serve
from mcp_bindgen.runtime.protocol.errors import StoreUnavailable
from mcp_bindgen.runtime.session.endpoint import Endpoint
from mcp_bindgen.runtime.session.server import serving
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.v2026_07_28.extensions import tasks
from tests.harness import any_revision
from tests.harness.any_revision import of_revision
from tests.harness.checked_connections import STATELESS, bindings, lone, request, running, until
from tests.harness.effort import each
from tests.harness.http_wires import LATEST, Headers, Wires, stateless, wires

TOKEN = {"authorization": "Bearer a-token-that-nobody-guesses"}
ADA = Identity(subject="ada", scopes=frozenset({"mcp"}))
NAMES = ("first", "second")
BIG = "x" * 200_000


class Echo(any_revision.Tools):
    """A tool that answers with its own name."""

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        return self.text(params.name)


class Endpoints(NamedTuple):
    """Connections to two endpoints of one server; each refuses the tool of its name, and the second has no sessions."""

    first: Wires
    second: Wires


def policy(name: str) -> ResourceServer:
    """Return a policy that lets nobody call the tool of a name."""
    keys = StaticTokens({TOKEN["authorization"].split()[1]: ADA})
    return ResourceServer("http://localhost/mcp", keys, scopes={("tools/call", name): [f"rare:{name}"]})


@asynccontextmanager
async def in_memory(server: Any, kind: Any) -> AsyncGenerator[Any]:
    """Connect a client of a class to the server in this process, which has no tokens."""
    ours, theirs = pair()
    async with running(serve(theirs, server)), connect(ours, kind) as client:
        yield client


@asynccontextmanager
async def endpoints(server: Any) -> AsyncGenerator[Endpoints]:
    """Serve one server at two endpoints."""
    async with AsyncExitStack() as stack:
        first = HttpApp(server, auth=policy("first"), limits=HttpLimits(message=100_000))
        second = HttpApp(server, auth=policy("second"), sessions=False)
        yield Endpoints(*[await stack.enter_async_context(wires(one)) for one in (first, second)])


def called(revision: str, **params: object) -> dict[str, Any]:
    """Return a call of a tool."""
    return lone(1, "tools/call", **params) if revision == STATELESS else request(1, "tools/call", params)


async def statuses(http: Wires, headers: Headers, revision: str) -> list[int]:
    """Return the statuses of calls of both tools."""
    found: list[int] = []
    for name in NAMES:
        message = (
            lone(1, "tools/call", name=name) if revision == STATELESS else request(1, "tools/call", {"name": name})
        )
        more = stateless(message) if revision == STATELESS else headers
        found.append(await (await http.ask("POST", message, **TOKEN, **more)).status())
    return found


@each("home", [v2025_11_25, v2026_07_28])
@each("revision", [LATEST, STATELESS])
async def test_each_endpoint_has_its_own_policy(home: Any, revision: str) -> None:
    server = of_revision(Echo, home)()
    before = dict(vars(server))
    async with endpoints(server) as (first, second):
        session = {name: value for name, value in (await first.begin(user=TOKEN)).items() if name not in TOKEN}
        assert await statuses(first, session, revision) == [403, 200]
        assert await statuses(second, {"mcp_protocol_version": LATEST}, revision) == [200, 403]
        async with in_memory(server, bindings(revision).Client) as client:  # the user who starts a process may do all
            assert [(await client.call_tool(name)).content[0].text for name in NAMES] == [*NAMES]
    assert vars(server) == before


async def test_an_endpoint_of_http_with_sse_has_its_own_policy() -> None:
    server = of_revision(Echo, v2025_11_25)()
    async with endpoints(server) as (first, _), wires(SseApp(server, auth=policy("second"))) as third:
        _, path = await third.open_sse(authorization=TOKEN["authorization"])
        asked = [request(number, "tools/call", {"name": name}) for number, name in enumerate(NAMES)]
        assert [await (await third.ask("POST", one, path, **TOKEN)).status() for one in asked] == [202, 403]
        session = {name: value for name, value in (await first.begin(user=TOKEN)).items() if name not in TOKEN}
        assert await statuses(first, session, LATEST) == [403, 200]


@each("revision", [LATEST, STATELESS])
async def test_each_endpoint_has_its_own_limits_and_sessions(revision: str) -> None:
    server = of_revision(Echo, v2025_11_25)()
    async with endpoints(server) as (first, second):
        begun = await first.begin(user=TOKEN)
        assert "mcp_session_id" in begun
        unnamed = await second.ask("POST", request(1, "resources/subscribe", {"uri": "a:b"}), **TOKEN)
        assert await unnamed.status() == 200
        assert "needs a session" in unnamed.json["error"]["message"]
        for http, status in ((first, 413), (second, 200)):
            params = {"name": "first" if http is second else "second", "arguments": {"text": BIG}}
            message = called(revision, **params)
            named = {**begun} if http is first else {**TOKEN, "mcp_protocol_version": LATEST}
            headers = {**TOKEN, **stateless(message)} if revision == STATELESS else named
            assert await (await http.ask("POST", message, **headers)).status() == status
        assert server.has_sessions


async def test_a_broadcast_reaches_the_clients_of_all_endpoints() -> None:
    told: list[str] = []

    class Listening(v2025_11_25.Client):
        async def on_tool_list_changed(self, params: Any, ctx: Any) -> None:
            told.append("memory")

    class Changing(any_revision.Tools):
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            return self.text("x")

    server = of_revision(Changing, v2025_11_25)()
    async with endpoints(server) as (first, second), in_memory(server, Listening):
        session = await first.begin(user=TOKEN)
        stream = await first.ask("GET", accept="text/event-stream", **session)
        wanted = lone(1, "subscriptions/listen", notifications={"toolsListChanged": True})
        subscription = await second.ask("POST", wanted, **TOKEN, **stateless(wanted))
        await subscription.until(lambda received: b"acknowledged" in received)
        await until(lambda: len(server.connections) == 3)
        await server.broadcast(lambda client: client.notify_tool_list_changed())
        for wire in (stream, subscription):
            await wire.until(lambda received: b"tools/list_changed" in received)
        await until(lambda: told == ["memory"])


class Jobs(tasks.Server):
    """A server whose tools are tasks."""

    info = v2026_07_28.types.Implementation(name="jobs", version="1")
    own_tasks = Tasks(limits=TaskLimits(poll=0.05))

    @as_task(tools=dict.fromkeys(NAMES, "required"))
    async def call_tool(self, params: Any, ctx: Any) -> Any:
        return v2026_07_28.types.CallToolResult(content=[v2026_07_28.types.TextContent(text=params.name)])


@pytest.mark.parametrize("name", NAMES)
async def test_the_policy_of_an_endpoint_decides_about_tasks_that_another_one_began(name: str) -> None:
    declared: Any = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    async with endpoints(Jobs()) as both:
        begins, reads = both if name == "second" else both[::-1]
        message = lone(1, "tools/call", declared, name=name)
        begun = await begins.ask("POST", message, **TOKEN, **stateless(message))
        assert await begun.status() == 200, begun.received
        id_ = begun.json["result"]["taskId"]
        for http, status in ((begins, 200), (reads, 403)):
            asked = lone(2, "tasks/get", declared, taskId=id_)
            wire = await http.ask("POST", asked, **TOKEN, **stateless(asked), mcp_name=id_)
            assert await wire.status() == status, wire.received


async def test_endpoints_that_share_a_store_publish_a_broadcast_once() -> None:
    told: list[str] = []

    class Shared:
        shared = object()
        is_away = False

        async def publish(self, server: Any, tell: Any) -> bool:
            if self.is_away:
                raise StoreUnavailable
            told.append("all")
            return True

    class Listening(v2025_11_25.Client):
        async def on_tool_list_changed(self, params: Any, ctx: Any) -> None:
            told.append("memory")

    server = of_revision(Echo, v2025_11_25)()
    workers: Any = Shared()
    kept = [Endpoint([server], workers=workers) for _ in range(2)]
    async with in_memory(server, Listening) as client:
        await client.call_tool("first")
        await server.broadcast(lambda one: one.notify_tool_list_changed())
        await until(lambda: sorted(told) == ["all", "memory"])
        workers.is_away = True
        with pytest.raises(StoreUnavailable):
            await server.broadcast(lambda one: one.notify_tool_list_changed())
        await until(lambda: told.count("memory") == 2)  # clients of other endpoints are told all the same
    assert len(kept) == 2


async def test_servers_that_are_equal_or_have_no_hash_have_endpoints_of_their_own() -> None:
    @dataclass
    class Plain(of_revision(Echo, v2025_11_25)):  # type: ignore[misc]
        name: str = "plain"

    first, second = Plain(), Plain()
    assert first == second
    kept = Endpoint([first])
    assert [*serving(first)] == [kept]
    assert not [*serving(second)]


@pytest.mark.parametrize("order", [("stateful", "stateless"), ("stateless", "stateful")])
async def test_a_method_of_a_user_has_a_handler_for_each_revision(order: tuple[str, str]) -> None:
    params = v2025_11_25.methods.METHODS["tools/list"].params
    asks: RequestMethod[Any, dict[str, Any]] = RequestMethod("example/echo", "client", params, result=dict[str, Any])

    class Own(of_revision(Echo, v2025_11_25)):  # type: ignore[misc]
        @handles(asks)
        async def echo(self, params: Any, ctx: Any) -> Any:
            return {"revision": ctx.wire_revision}

    async with wires(HttpApp(Own())) as http:
        session = await http.begin()
        message = lone(1, "example/echo")
        for era in order:
            headers = session if era == "stateful" else stateless(message)
            sent = request(1, "example/echo", {}) if era == "stateful" else message
            wire = await http.ask("POST", sent, **headers)
            assert await wire.status() == 200, wire.received
            assert wire.json["result"]["revision"] == (LATEST if era == "stateful" else STATELESS)
        bare = {name: value for name, value in stateless(message).items() if name != "mcp_method"}
        assert await (await http.ask("POST", message, **bare)).status() == 400
