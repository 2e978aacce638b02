"""Gateways: servers of one revision for clients of all, with state, questions and identities kept apart."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from mcp_bindgen import v2024_11_05, v2025_06_18, v2025_11_25, v2026_07_28
from mcp_bindgen.app import App, Completion, Context
from mcp_bindgen.gateway import Gateway
from mcp_bindgen.gateway.gateway import Relay
from mcp_bindgen.http import HttpApp
from mcp_bindgen.runtime import ProtocolError, Transport, serve
from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.session.endpoint import all_servers, lifespans
from mcp_bindgen.runtime.session.targets import Address
from mcp_bindgen.runtime.transports.memory import pair
from tests.harness.checked_connections import refused, until
from tests.harness.http_wires import listening, who

PACKAGES = [v2024_11_05, v2025_06_18, v2025_11_25, v2026_07_28]


@pytest.fixture(params=PACKAGES)
def package(request: pytest.FixtureRequest) -> Any:
    """The revision of the client."""
    return request.param


@pytest.fixture(params=["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"])
def revision(request: pytest.FixtureRequest) -> Any:
    """The revision of the server."""
    return request.param


@pytest.fixture
def books() -> Books:
    return Books()


@pytest.fixture
def client(books: Books, package: Any, revision: str) -> Any:
    """A client of the app behind a gateway."""
    return connected(Gateway(books.at(revision)), package)


def address(make: Callable[[], Sequence[Any]], revision: str) -> Address:
    """Return the address of servers in one revision; each connection has servers of its own."""

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Transport]:
        servers = make()
        ours, theirs = pair()
        async with lifespans(servers), background_tasks() as tasks:
            tasks.start_soon(partial(serve, theirs, *servers, revisions=[revision]))
            yield ours

    return Address(opened)


class Books:
    """An app with entries of all kinds, and state for each of its connections."""

    def __init__(self) -> None:
        self.runs = 0
        self.waiting = 0
        self.connections = 0
        self.titles: dict[object, list[str]] = {}
        self.app = app = App("books", version="3", instructions="Read.", dynamic={"tools", "contents"})

        @app.tool
        def add(a: int, b: int) -> int:
            """Add numbers."""
            return a + b

        @app.tool
        def keep(title: str, ctx: Context) -> list[str]:
            """Keep a title for this connection."""
            kept = self.titles.setdefault(ctx.link, [])
            kept.append(title)
            return list(kept)

        @app.tool
        async def greet(ctx: Context) -> str:
            """Greet the user."""
            self.runs += 1
            first = await ctx.ask("First name?", str)
            last = await ctx.ask("Last name?", str)
            return f"{first} {last}"

        @app.tool
        async def work(ctx: Context) -> str:
            """Work with progress and a log."""
            await ctx.warning("working")
            await ctx.progress(1, 2)
            return "done"

        @app.tool
        async def wait() -> None:
            """Wait for a cancellation."""
            self.waiting += 1
            try:
                await anyio.sleep_forever()
            finally:
                self.waiting -= 1

        @app.prompt
        def plan(day: Literal["monday", "tuesday"]) -> str:
            """Plan a day."""
            return f"plan {day}"

        @app.resource("book://{id}")
        def book(id: str) -> str:
            """Read a book."""
            return f"text of {id}"

        @app.resource("book://first")
        def first() -> str:
            """Read the first book."""
            return "first"

        @app.completion("book://{id}", "id")
        def ids(asked: Completion) -> list[str]:
            return [f"{asked.value}1"]

    def at(self, revision: str) -> Address:
        """Return the address of the app in one revision."""

        def servers() -> Sequence[Any]:
            self.connections += 1
            return [self.app.served()]

        return address(servers, revision)


class Person:
    """Part of clients that answers questions, and remembers what it hears."""

    answers: Callable[[str], str] = staticmethod(lambda key: f"my {key}")
    heard: list[Any]

    async def on_elicit(self, params: Any, ctx: Any) -> Any:
        (key,) = params.model_dump()["requestedSchema"]["properties"]
        return {"action": "accept", "content": {key: self.answers(params.message)}}

    async def on_logging_message(self, params: Any, ctx: Any) -> None:
        self.heard.append(params.data)

    async def on_tool_list_changed(self, params: Any, ctx: Any) -> None:
        self.heard.append("tools")

    async def on_resource_updated(self, params: Any, ctx: Any) -> None:
        self.heard.append(params.uri)


def client_of(package: Any, **members: Any) -> Any:
    """Return a client of a revision that answers questions if the revision has them."""
    parts = {name: part for name, part in vars(Person).items() if name.startswith(("on_", "answers"))}
    if package is v2024_11_05:
        del parts["on_elicit"]
    client = type("Client", (package.Client,), {**parts, **members})()
    client.heard = []
    return client


def connected(target: Any, package: Any, **members: Any) -> AbstractAsyncContextManager[Any]:
    found: AbstractAsyncContextManager[Any] = client_of(package, **members).connected(target, exactly=True)
    return found


async def text(client: Any, tool: str, **arguments: Any) -> str:
    return str((await client.call_tool(tool, arguments)).content[0].text)


@pytest.mark.full
async def test_tools_prompts_and_resources_work_in_every_pair_of_revisions(
    client: Any, package: Any, revision: str
) -> None:
    assert (client.server_info.name, client.instructions) == ("books", "Read.")
    assert [tool.name for tool in (await client.list_tools()).tools][:2] == ["add", "keep"]
    added = await client.call_tool("add", {"a": 1, "b": 2})
    assert added.content[0].text == '{"result":3}'
    assert added.model_dump().get("structuredContent", {"result": 3}) == {"result": 3}
    assert (await client.get_prompt("plan", {"day": "monday"})).messages[0].content.text == "plan monday"
    assert (await client.read_resource("book://7")).contents[0].text == "text of 7"
    assert [one.uri async for one in client.iter_resources()] == ["book://first"]
    assert [one.uri_template async for one in client.iter_resource_templates()] == ["book://{id}"]
    types = package.types
    kind = getattr(types, "ResourceTemplateReference", None) or types.ResourceReference
    argument = types.CompleteRequestParamsArgument(name="id", value="4")
    assert (await client.complete(kind(uri="book://{id}"), argument)).completion.values == ["41"]
    assert (await refused(client.call_tool("none", {}), match="Unknown tool")).code == -32602
    wrong = client.call_tool("add", {"a": "x", "b": 2})
    if revision in ("2025-11-25", "2026-07-28"):
        assert (await wrong).is_error
    else:
        await refused(wrong, match=r"arguments\.a")


@pytest.mark.full
@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"], indirect=True)
@pytest.mark.parametrize("package", [v2025_06_18, v2026_07_28], indirect=True)
async def test_changed_tools_work_in_every_pair_of_revisions(books: Books, package: Any, revision: str) -> None:
    """Change a tool; the revision of the server says whether invalid arguments are an error or a result."""
    changes = {"name": "plus", "arguments": {"a": {"name": "first"}, "b": {"default": 2, "hide": True}}}
    async with connected(Gateway(books.at(revision), tools={"add": changes}), package) as client:
        (tool,) = [one.model_dump() async for one in client.iter_tools() if one.name in ("plus", "add")]
        assert tool["inputSchema"]["properties"] == {"first": {"type": "integer"}}
        assert await text(client, "plus", first=1) == '{"result":3}'
        assert await text(client, "greet") == "my First name? my Last name?"
        await refused(client.call_tool("add", {"a": 1, "b": 2}), ProtocolError, "Unknown tool: add")
        problem = "Invalid arguments of plus: arguments: 'first' is missing"
        try:
            answer = (await client.call_tool("plus", {})).content[0].text
        except ProtocolError as error:
            answer = str(error)
            assert revision == "2025-06-18"
        else:
            assert revision == "2026-07-28"
        assert problem in answer


@pytest.mark.full
@pytest.mark.parametrize("package", [v2025_06_18, v2026_07_28])
async def test_elicitations_reach_the_client_and_run_a_stateful_server_once(
    books: Books, client: Any, revision: str
) -> None:
    said = await text(client, "greet")
    if revision == "2024-11-05":
        assert "elicitation" in said
    else:
        assert said == "my First name? my Last name?"
        assert books.runs == (3 if revision == "2026-07-28" else 1)


@pytest.mark.full
async def test_progress_and_logs_reach_the_request(client: Any, package: Any) -> None:
    seen: list[Any] = []
    caller = client.with_options(on_progress=lambda progress: seen.append((progress.progress, progress.total)))
    if package is v2026_07_28:
        client.link.meta = {**client.link.meta, client.dispatcher.revision.meta_keys["log_level"]: "info"}
    else:
        await client.set_level("info")
    assert await text(caller, "work") == "done"
    await until(lambda: client.heard == ["working"] and seen)
    assert seen == [(1, 2)]


@pytest.mark.full
@pytest.mark.parametrize("package", [v2025_06_18, v2026_07_28])
async def test_a_cancelled_request_is_cancelled_at_the_server(books: Books, client: Any) -> None:
    await text(client, "add", a=1, b=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "wait", {})
        await until(lambda: books.waiting == 1)
        tasks.cancel_scope.cancel()
    await until(lambda: books.waiting == 0)
    assert await text(client, "add", a=1, b=1) == '{"result":2}'


@pytest.mark.parametrize("package", [v2025_11_25])
async def test_change_notifications_reach_stateful_clients(books: Books, client: Any) -> None:
    await client.list_tools()
    await client.subscribe("book://first")  # the gateway listens from now on
    books.app.updated("book://first")
    await until(lambda: "book://first" in client.heard)
    books.app.remove_tool("add")
    await until(lambda: "tools" in client.heard)
    assert "add" not in [tool.name for tool in (await client.list_tools()).tools]
    client.heard.clear()
    await client.unsubscribe("book://first")
    await anyio.sleep(0.1)
    books.app.updated("book://first")
    await text(client, "keep", title="a")
    assert client.heard == []


class Held(Transport):
    """A transport that holds acknowledgements of subscriptions back until it is released."""

    def __init__(self, inner: Transport, released: anyio.Event) -> None:
        self._inner, self._released = inner, released

    async def receive(self) -> Sequence[Any]:
        messages: Sequence[Any] = await self._inner.receive()
        if any(b"subscriptions/acknowledged" in message for message in messages):
            await self._released.wait()
        return messages

    async def send(self, messages: Sequence[bytes]) -> None:
        await self._inner.send(messages)

    async def close(self) -> None:
        await self._inner.close()


async def test_a_change_of_a_list_that_a_stateful_client_has_read_is_reported(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway answers once the stateless server reports changes."""
    released, asked = anyio.Event(), anyio.Event()
    (server,) = (one for one in all_servers([books.app]) if one.revision == "2026-07-28")

    async def agree(wanted: Any, ctx: Any) -> Any:
        asked.set()
        await released.wait()
        return wanted

    monkeypatch.setattr(server, "agree", agree)

    async def see(client: Any) -> None:
        if "add" in [tool.name for tool in (await client.list_tools()).tools]:
            await until(lambda: client.heard == ["tools"])

    gateway = Gateway(address(lambda: [server], "2026-07-28"))
    async with connected(gateway, v2025_11_25) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(see, client)
        await asked.wait()
        await anyio.wait_all_tasks_blocked()
        books.app.remove_tool("add")
        await anyio.wait_all_tasks_blocked()
        released.set()


async def test_a_subscription_to_refused_resources_keeps_no_connection(books: Books, revision: str) -> None:
    wanted = v2026_07_28.types.SubscriptionFilter(resource_subscriptions=["none://1", "none://2"])
    gateway = Gateway(books.at(revision), max_connections=1)
    async with connected(gateway, v2026_07_28) as client, client.subscribed(wanted) as agreed:
        assert not agreed.resource_subscriptions
        assert await text(client, "add", a=1, b=1) == '{"result":2}'


async def test_a_resource_subscription_waits_for_the_stateless_servers_acknowledgement(books: Books) -> None:
    """A change between the response and the acknowledgement would be lost."""
    released, subscribed = anyio.Event(), anyio.Event()
    inner: Any = books.at("2026-07-28")

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Transport]:
        async with inner.open() as transport:
            yield Held(transport, released)

    async def subscribe(client: Any) -> None:
        await client.subscribe("book://first")
        subscribed.set()

    async with connected(Gateway(Address(opened)), v2025_11_25) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(subscribe, client)
        await anyio.wait_all_tasks_blocked()
        assert not subscribed.is_set()
        released.set()
        await subscribed.wait()
        books.app.updated("book://first")
        await until(lambda: "book://first" in client.heard)


class Refused(Held):
    """A transport to a server that knows no subscription to `book://secret`."""

    async def send(self, messages: Sequence[bytes]) -> None:
        names = {True: b'"unknown"', False: b'"subscriptions/listen"'}
        await super().send([one.replace(names[False], names[b"book://secret" in one]) for one in messages])


async def test_a_refused_or_cancelled_subscription_leaves_other_subscriptions_intact(books: Books) -> None:
    """Each resource is told of once, as only one subscription at the server goes on."""
    released = anyio.Event()
    inner: Any = books.at("2026-07-28")

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Transport]:
        async with inner.open() as transport:
            yield Refused(transport, released)

    async with connected(Gateway(Address(opened)), v2025_11_25) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.subscribe, "book://second")
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        released.set()
        await client.subscribe("book://first")
        with pytest.raises(ProtocolError):
            await client.subscribe("book://secret")
        await client.subscribe("book://third")
        for name in ("first", "second", "third"):
            books.app.updated(f"book://{name}")
        await until(lambda: "book://third" in client.heard)
        assert client.heard == ["book://first", "book://third"]


@pytest.mark.parametrize("package", [v2026_07_28])
async def test_change_notifications_reach_subscriptions_of_stateless_clients(books: Books, client: Any) -> None:
    wanted = v2026_07_28.types.SubscriptionFilter(tools_list_changed=True, resource_subscriptions=["book://first"])
    async with client.subscribed(wanted) as agreed:
        assert agreed == wanted
        books.app.updated("book://first")
        books.app.remove_tool("add")
        await until(lambda: len(client.heard) == 2)
    assert set(client.heard) == {"book://first", "tools"}


@pytest.mark.parametrize("revision", ["2025-11-25"])
async def test_a_subscription_that_is_cancelled_before_it_begins_keeps_no_connection(
    books: Books, revision: str
) -> None:
    """Clients that hang up while the gateway connects must not use up its connections."""
    inner: Any = books.at(revision)
    is_slow = False

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Transport]:
        async with inner.open() as transport:
            if is_slow:
                await anyio.sleep_forever()
            yield transport

    wanted = v2026_07_28.types.SubscriptionFilter(resource_subscriptions=["book://first"])
    async with connected(Gateway(Address(opened), max_connections=2), v2026_07_28) as client:
        is_slow = True
        for _ in range(2):
            with anyio.move_on_after(0.05):
                async with client.subscribed(wanted):
                    pass
        is_slow = False
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}


async def test_a_subscription_is_acknowledged_once_the_server_sends_its_changes(books: Books, revision: str) -> None:
    """A change between the acknowledgement and the connection to the server would be lost."""
    released, acknowledged = anyio.Event(), anyio.Event()
    inner: Any = books.at(revision)

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Transport]:
        async with inner.open() as transport:
            if books.connections > 1:  # the first one is the probe of the gateway
                await released.wait()
            yield transport

    async def subscribe(client: Any) -> None:
        async with client.subscribed(v2026_07_28.types.SubscriptionFilter(tools_list_changed=True)):
            acknowledged.set()
            books.app.remove_tool("add")
            await until(lambda: client.heard == ["tools"])

    async with connected(Gateway(Address(opened)), v2026_07_28) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(subscribe, client)
        await until(lambda: books.connections > 1)
        await anyio.wait_all_tasks_blocked()
        assert not acknowledged.is_set()
        released.set()


# --- users --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def over_http(books: Books, revision: str = "2025-06-18", **options: Any) -> AsyncGenerator[str]:
    gateway = Gateway(books.at(revision), **options)
    await gateway.probe()
    async with listening(HttpApp(gateway, principal=who)) as port:
        yield f"http://127.0.0.1:{port}/mcp"


def user(url: str, name: str, package: Any = v2026_07_28, **members: Any) -> AbstractAsyncContextManager[Any]:
    client = client_of(package, **members)
    found: AbstractAsyncContextManager[Any] = client.connected(url, exactly=True, headers={"x-user": name})
    return found


@pytest.mark.full
@pytest.mark.parametrize("package", [v2025_11_25, v2026_07_28])
async def test_users_share_no_state(package: Any, books: Books) -> None:
    async with (
        over_http(books) as url,
        user(url, "bob", package) as bob,
        user(url, "eve", package) as eve,
        user(url, "bob", package) as again,
    ):
        assert await text(bob, "keep", title="b") == '{"result":["b"]}'
        assert await text(eve, "keep", title="e") == '{"result":["e"]}'
        # a session has state of its own; requests without a session share the state of their user
        both = '["b","c"]' if package is v2026_07_28 else '["c"]'
        assert await text(again, "keep", title="c") == f'{{"result":{both}}}'


async def test_isolated_requests_share_no_state(books: Books) -> None:
    async with over_http(books, isolated=True) as url, user(url, "bob") as bob:
        for title in "ab":
            assert await text(bob, "keep", title=title) == f'{{"result":["{title}"]}}'


@pytest.mark.full
@pytest.mark.parametrize("package", [v2025_11_25, v2026_07_28])
async def test_elicitations_reach_the_user_that_made_the_call(package: Any, books: Books) -> None:
    """Many users at once: each reads the own answers alone."""
    said: dict[str, str] = {}

    async def call(url: str, name: str) -> None:
        async with user(url, name, package, answers=staticmethod(lambda message: f"{name}'s")) as client:
            said[name] = await text(client, "greet")

    async with over_http(books) as url, anyio.create_task_group() as tasks:
        for name in "abcdefgh":
            tasks.start_soon(call, url, name)
    assert said == {name: f"{name}'s {name}'s" for name in "abcdefgh"}
    assert books.runs == 8


async def rounds(client: Any, **more: Any) -> Any:
    """Call `greet` and return the question of the server."""
    types = v2026_07_28.types
    meta = client.metadata(types.RequestMetaObject, None)
    params = types.CallToolRequestParams(name="greet", arguments={}, meta=meta, **more)
    return await client.request(v2026_07_28.methods.CALL_TOOL, params)


async def test_only_its_own_user_can_resume_a_call_that_waits_for_input(books: Books) -> None:
    types = v2026_07_28.types
    async with over_http(books) as url, user(url, "bob") as bob, user(url, "eve") as eve:
        asked = await rounds(bob)
        ((key, question),) = asked.input_requests.items()
        (member,) = question.params.requested_schema.properties
        stolen = {"input_responses": {key: types.ElicitResult(action="accept", content={member: "x"})}}
        await refused(rounds(eve, **stolen, request_state="forged"))
        other = await rounds(eve, **stolen)
        assert list(other.input_requests) != [key]
        assert books.runs == 2  # a call of her own
        following = await rounds(bob, **stolen, request_state=asked.request_state)
        assert list(following.input_requests) != [key]
        assert books.runs == 2


async def test_connections_are_limited_and_idle_ones_are_replaced(books: Books) -> None:
    async with over_http(books, max_connections=1) as url, user(url, "bob") as bob, user(url, "eve") as eve:
        assert await text(bob, "add", a=1, b=1) == '{"result":2}'
        assert await text(eve, "add", a=1, b=1) == '{"result":2}'
        assert books.connections == 3  # the first one is the probe
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bob.call_tool, "wait", {})
            await until(lambda: books.waiting == 1)
            await refused(eve.call_tool("add", {"a": 1, "b": 1}), match="1 connections to the server are in use")
            tasks.cancel_scope.cancel()


@pytest.mark.parametrize("package", [v2025_11_25, v2026_07_28])
async def test_a_principal_cannot_use_up_all_connections(package: Any, books: Books) -> None:
    async with (
        over_http(books, max_connections=8) as url,
        user(url, "eve", package) as first,
        user(url, "eve", package) as second,
        user(url, "eve", package) as third,
        user(url, "bob", package) as bob,
        anyio.create_task_group() as tasks,
    ):
        for client in (first, second):
            tasks.start_soon(client.call_tool, "wait", {})
        await until(lambda: books.waiting == 2)
        await refused(third.call_tool("add", {"a": 1, "b": 1}), match="2 connections of this user to the server are in")
        assert await text(bob, "add", a=1, b=1) == '{"result":2}'
        tasks.cancel_scope.cancel()


async def test_calls_of_the_principal_that_has_most_are_cancelled_first(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Relay, "max_parked", 3)
    async with over_http(books) as url, user(url, "bob") as bob, user(url, "eve") as eve:
        parked = await rounds(bob)
        for _ in range(5):
            await rounds(eve)
        ((key, question),) = parked.input_requests.items()
        (member,) = question.params.requested_schema.properties
        answers = {key: v2026_07_28.types.ElicitResult(action="accept", content={member: "Bob"})}
        await rounds(bob, input_responses=answers, request_state=parked.request_state)
        assert books.runs == 6, "the first call of bob goes on"


# --- servers that misbehave ------------------------------------------------------------------------------------

FRAGILE = '''
import os
from mcp_bindgen.app import App, run

app = App("fragile", dynamic={"tools"})

@app.tool
def pid() -> int:
    """Return the id of the process."""
    return os.getpid()

@app.tool
def die() -> None:
    """End the process."""
    os._exit(3)

@app.tool
def change() -> None:
    """Change the list of tools."""
    app.disable("pid")
    app.enable("pid")

run(app)
'''


@pytest.mark.full
@pytest.mark.parametrize("package", [v2025_11_25, v2026_07_28])
async def test_a_dead_server_is_reported_and_restarted(package: Any, tmp_path: Path) -> None:
    (tmp_path / "fragile.py").write_text(FRAGILE, "utf-8")
    gateway = Gateway([sys.executable, str(tmp_path / "fragile.py")])
    async with connected(gateway, package) as client:
        before = await text(client, "pid")
        await refused(client.call_tool("die", {}), match="Gateway: the server ended with exit code 3")
        assert await text(client, "pid") != before
        if package is v2025_11_25:
            while "tools" not in client.heard:  # the gateway listens soon
                await client.call_tool("change", {})


async def test_extensions_that_the_gateway_cannot_forward_are_not_declared() -> None:
    class Extended(v2026_07_28.Server):
        def extra_capabilities(self) -> Any:
            return {"extensions": {f"io.modelcontextprotocol/{name}": {} for name in ("ui", "tasks")}}

        async def list_tools(self, params: Any, ctx: Any) -> Any:
            return {"tools": [], "ttlMs": 0, "cacheScope": "private"}

    gateway = Gateway(address(lambda: [Extended()], "2026-07-28"))
    async with connected(gateway, v2026_07_28) as client:
        assert client.server_capabilities["extensions"] == {"io.modelcontextprotocol/ui": {}}


@pytest.mark.full
async def test_huge_lists_pass_page_by_page() -> None:
    pages = 200

    class Huge(v2025_06_18.Server):
        async def list_tools(self, params: Any, ctx: Any) -> Any:
            page = int(params.cursor or 0)
            tools = [{"name": f"t{page}-{number}", "inputSchema": {"type": "object"}} for number in range(50)]
            return {"tools": tools, **({"nextCursor": str(page + 1)} if page + 1 < pages else {})}

    async with connected(Gateway(address(lambda: [Huge()], "2025-06-18")), v2026_07_28) as client:
        assert len((await client.list_tools()).tools) == 50
        assert len([tool async for tool in client.iter_tools()]) == 50 * pages
