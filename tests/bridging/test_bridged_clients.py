"""Clients of each revision with servers of all other revisions; their messages are checked against the schema."""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from pydantic import TypeAdapter

from mcp_bindgen.bridging.chain import NotConvertible
from mcp_bindgen.host.result_cache import ResultCache
from mcp_bindgen.runtime import (
    AuthorizationError,
    ProtocolError,
    RequestMethod,
    RequestTimeout,
    connect,
    handles,
    serve,
)
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import SessionLost
from mcp_bindgen.runtime.protocol.transport import Lost
from mcp_bindgen.runtime.session.subscriptions import Subscription
from mcp_bindgen.runtime.transports.memory import pair
from tests.harness.checked_connections import (
    INITIALIZED,
    STATEFUL,
    STATELESS,
    Raw,
    Recording,
    answer,
    bindings,
    notification,
    refusal,
    refused,
    request,
    running,
    scripted,
    until,
)

REVISIONS = [*STATEFUL, STATELESS]
PAIRS = [(home, wire) for home, wire in itertools.product(REVISIONS, REVISIONS) if home != wire]
OLD, NEW = "2024-11-05", "2025-11-25"
URI = "file:///notes.txt"
FORM = {"message": "Name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi?"}}], "maxTokens": 5}

every_pair = pytest.mark.parametrize(("home", "wire"), PAIRS)


def make_server(revision: str) -> Any:
    """Return a server of one revision that sends requests and notifications and accepts subscriptions."""
    package = bindings(revision)
    types = package.types

    class Full(package.Server):  # type: ignore[misc, name-defined]
        info = types.Implementation(name="full", version="1")

        def __init__(self) -> None:
            self.subscribed: list[str] = []

        def extra_capabilities(self) -> Any:
            return {"resources": {"subscribe": True}, "tools": {"listChanged": True}}

        async def list_tools(self, params: Any, ctx: Any) -> Any:
            return types.ListToolsResult(tools=[types.Tool(name="hi", input_schema=types.ToolInputSchema())])

        async def call_tool(self, params: Any, ctx: Any) -> Any:
            text = "done"
            if params.name == "fails":
                raise ProtocolError(-32002 if revision < STATELESS else -32602, "no such thing")
            if params.name == "ask":
                text = (await self._ask(ctx, "elicitation/create", FORM)).content["name"]
            elif params.name == "sample":
                content = (await self._ask(ctx, "sampling/createMessage", SAMPLING)).content
                text = (content[0] if isinstance(content, list) else content).text
            elif params.name == "roots":
                text = (await self._ask(ctx, "roots/list", None)).roots[0].uri
            elif params.name == "modes":
                text = " ".join(sorted(ctx.peer_capabilities["elicitation"]))
            else:
                await ctx.progress(1, 2)
                await ctx.log("info", "at work")
            return types.CallToolResult(content=[types.TextContent(text=text)])

        async def _ask(self, ctx: Any, name: str, params: Any) -> Any:
            method = package.methods.METHODS[name]
            return await ctx.ask_by(name, method, params and TypeAdapter(method.params).validate_python(params))

        async def list_resources(self, params: Any, ctx: Any) -> Any:
            return types.ListResourcesResult(resources=[])

        async def complete(self, params: Any, ctx: Any) -> Any:
            return types.CompleteResult(completion=types.CompleteResultCompletion(values=[params.argument.value + "!"]))

        if revision != STATELESS:

            async def subscribe(self, params: Any, ctx: Any) -> Any:
                self.subscribed.append(params.uri)
                return types.EmptyResult()

            async def unsubscribe(self, params: Any, ctx: Any) -> Any:
                self.subscribed.remove(params.uri)
                return types.EmptyResult()

    return Full()


def make_client(revision: str) -> Any:
    """Return a client of one revision that answers all requests and records notifications."""
    package = bindings(revision)
    types = package.types

    class Answering(package.Client):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.told: list[Any] = []

        async def on_tool_list_changed(self, params: Any, ctx: Any) -> None:
            self.told.append("tools")

        async def on_resource_updated(self, params: Any, ctx: Any) -> None:
            self.told.append(params.uri)

        async def on_logging_message(self, params: Any, ctx: Any) -> None:
            assert isinstance(params, types.LoggingMessageNotificationParams)
            self.told.append(params.data)

        async def on_create_message(self, params: Any, ctx: Any) -> Any:
            assert isinstance(params, package.methods.CREATE_MESSAGE.params)
            return types.CreateMessageResult(role="assistant", model="m", content=types.TextContent(text="sampled"))

        async def on_list_roots(self, *told: Any) -> Any:
            return types.ListRootsResult(roots=[types.Root(uri="file:///home")])

        if "elicitation/create" in package.methods.METHODS:

            async def on_elicit(self, params: Any, ctx: Any) -> Any:
                return types.ElicitResult(action="accept", content={"name": "Ada"})

    return Answering()


@asynccontextmanager
async def bridged(home: str, wire: str) -> AsyncGenerator[tuple[Any, Any, Recording]]:
    """Connect a client to a server of another revision; check all messages against the server's schema."""
    left, right = pair()
    ours, theirs = Recording(left, wire), Recording(right, wire)
    server, client = make_server(wire), make_client(home)
    async with running(serve(theirs, server, revisions=[wire])), client.connected(ours) as connected:
        assert connected is client
        yield client, server, ours
    ours.check()
    theirs.check()


@pytest.mark.full
@every_pair
async def test_calls_use_client_types_and_messages_of_the_server_revision(home: str, wire: str) -> None:
    types = bindings(home).types
    async with bridged(home, wire) as (client, _, ours):
        assert (client.revision, client.wire_revision) == (home, wire)
        assert isinstance(client.server_info, types.Implementation)
        assert [tool.name async for tool in client.iter_tools()] == ["hi"]
        progress: list[Any] = []
        result = await client.with_options(on_progress=progress.append).call_tool("hi", {})
        assert isinstance(result, types.CallToolResult)
        assert result.content == [types.TextContent(text="done")]
        told = [(type(one).__name__, one.progress, one.total) for one in progress]
        assert told == [("ProgressNotificationParams", 1, 2)]
        reference = types.PromptReference(name="x")
        completed = await client.complete(reference, types.CompleteRequestParamsArgument(name="a", value="b"))
        assert completed.completion.values == ["b!"]
        error = await refused(client.call_tool("fails"), match="no such thing")
        assert error.code == (-32002 if wire < STATELESS else -32602)  # only of a resource has the code two values
    assert {"tools/list", "tools/call", "completion/complete"} <= set(ours.methods())


@pytest.mark.full
@every_pair
async def test_client_handlers_answer_servers_of_every_revision(home: str, wire: str) -> None:
    async with bridged(home, wire) as (client, _, _):
        expected = {"sample": "sampled", "roots": "file:///home"}
        if min(home, wire) >= "2025-06-18":
            expected |= {"ask": "Ada", "modes": "form url" if home >= NEW else ""}  # the first offer is in our revision
        for name, text in expected.items():
            assert (await client.call_tool(name)).content[0].text == text


@pytest.mark.full
@every_pair
async def test_notifications_reach_a_client_in_the_form_of_its_revision(home: str, wire: str) -> None:
    async with bridged(home, wire) as (client, server, ours):

        async def tell() -> None:
            await server.broadcast(lambda one: one.notify_resource_updated(URI))
            await server.broadcast(lambda one: one.notify_resource_updated("file:///other.txt"))
            await server.broadcast(lambda one: one.notify_tool_list_changed())

        if home == STATELESS:
            await server.broadcast(lambda one: one.notify_tool_list_changed())
            wanted = bindings(home).types.SubscriptionFilter(tools_list_changed=True, resource_subscriptions=[URI])
            async with client.subscribed(wanted) as agreed:
                assert agreed == wanted
                await tell()
                await until(lambda: "tools" in client.told)
            assert server.subscribed == []
            await tell()
            await client.list_tools()
            assert client.told == [URI, "tools"]
        else:
            await client.subscribe(URI)
            await tell()
            await until(lambda: "tools" in client.told)
            client.told = [one for one in client.told if one != "file:///other.txt"]  # added by the server
            assert client.told == [URI, "tools"]
            await client.unsubscribe(URI)
            await server.broadcast(lambda one: one.notify_resource_updated(URI))
            await client.list_tools()
            if wire == STATELESS:
                assert client.told == [URI, "tools"]
    assert ours.params("resources/unsubscribe") == ([{"uri": URI}] if wire != STATELESS else [])


async def test_an_immediate_subscription_opens_one_listen_stream() -> None:
    """Two subscriptions with one filter would send each notification twice."""
    async with bridged(STATEFUL[0], STATELESS) as (client, _, ours):
        await client.subscribe(URI)
        await client.list_tools()
        listened = [params["notifications"] for params in ours.params("subscriptions/listen")]
        assert listened == [{"resourceSubscriptions": [URI], "resourcesListChanged": True, "toolsListChanged": True}]


async def test_the_loss_of_its_subscription_is_a_change_for_a_client() -> None:
    async with bridged(STATEFUL[0], STATELESS) as (client, server, _):
        await client.subscribe(URI)
        for link in server.audience:
            if isinstance(link, Subscription):
                link.leave()
        await until(lambda: client.changes)
    assert client.told == []


@pytest.mark.full
@every_pair
async def test_log_levels_are_converted_for_the_server_revision(home: str, wire: str) -> None:
    async with bridged(home, wire) as (client, _, ours):
        if home == STATELESS:
            await client.call_tool("hi", {}, meta={bindings(home).REVISION.meta_keys["log_level"]: "info"})
            assert ours.params("logging/setLevel") == [{"level": "info"}]
        else:
            await client.call_tool("hi", {})
            await until(lambda: client.told == ["at work"])
            await client.set_level("error")
            await client.ping()
        await client.call_tool("hi", {})
        await client.list_tools()
        assert client.told == ["at work"] * (1 + (home == STATELESS))


async def test_a_request_unknown_to_the_server_revision_fails_before_it_is_sent() -> None:
    async with bridged("2026-07-28", "2025-11-25") as (client, _, ours):
        sent, method = len(ours.sent), bindings("2026-07-28").methods.METHODS["server/discover"]
        params = method.params(meta=client.metadata(bindings("2026-07-28").types.RequestMetaObject, None))
        await refused(client.request(method, params), NotConvertible, match=r"server/discover.*MCP 2025-11-25")
        assert len(ours.sent) == sent


async def test_a_field_that_collides_with_a_later_revision_is_dropped(caplog: Any) -> None:
    caplog.set_level(logging.DEBUG)

    async def old(raw: Raw) -> None:
        await welcome(raw, OLD, {"tools": {}})
        assert await raw.receive() == INITIALIZED
        tool = {"name": "hi", "title": 5, "icons": "none", "own": 1, "inputSchema": {"type": "object"}}
        await raw.send(answer((await raw.receive())["id"], {"tools": [tool]}))

    async with scripted(make_client(NEW), old, OLD) as client:
        (tool,) = (await client.list_tools()).tools
    assert (tool.name, tool.title, tool.icons, tool.model_extra) == ("hi", None, None, {"own": 1})
    assert client.invalid_items == ()
    assert "icons, title" in caplog.text


async def test_results_are_cached_according_to_the_ttl_of_the_server() -> None:
    class Lasting(type(make_server(STATELESS))):  # type: ignore[misc]
        async def list_tools(self, params: Any, ctx: Any) -> Any:
            return (await super().list_tools(params, ctx)).model_copy(update={"ttl_ms": 60_000})

    left, right = pair()
    client = make_client("2025-06-18")
    client.cache = ResultCache()
    ours = Recording(left, STATELESS)
    async with running(serve(right, Lasting(), revisions=[STATELESS])), client.connected(ours):
        for _ in range(3):
            await client.list_tools()
        assert ours.methods().count("tools/list") == 1
        await client.with_options(fresh=True).list_tools()
        assert ours.methods().count("tools/list") == 2


async def test_the_client_with_the_nearest_revision_is_used() -> None:
    left, right = pair()
    clients = [make_client("2024-11-05"), make_client("2025-11-25")]
    serving = serve(right, make_server("2025-06-18"), revisions=["2025-06-18"])
    async with running(serving), connect(left, *clients) as client:
        assert client is clients[1]
        assert (await client.call_tool("hi")).content[0].text == "done"


async def test_custom_methods_pass_unchanged() -> None:
    for home, wire in (("2025-11-25", STATELESS), (STATELESS, "2025-11-25")):

        class Echo(bindings(wire).Server):  # type: ignore[misc]
            @handles(ECHO)
            async def answer(self, params: Any, ctx: Any) -> Any:
                return {"got": params["x"]}

        left, right = pair()
        client = make_client(home)
        async with running(serve(right, Echo(), revisions=[wire])), client.connected(left):
            assert (await client.request(ECHO, {"x": 1}))["got"] == 1
            await refused(client.request(replace(ECHO, name="acme/none"), {}), match="acme/none")


# --- unusual servers, and lost sessions ---------------------------------------------------------------------------

ECHO: Any = RequestMethod("acme/echo", sender="both", params=dict[str, Any], result=dict[str, Any])


def filter_of(**wanted: Any) -> Any:
    return bindings(STATELESS).types.SubscriptionFilter(**wanted)


async def welcome(raw: Raw, revision: str, capabilities: Any = None, **info: Any) -> None:
    """Answer a handshake, or a probe and a handshake, in one revision."""
    asked = await raw.receive()
    if asked["method"] == "server/discover":
        await raw.send(refusal(asked["id"], -32601))
        asked = await raw.receive()
    told = {"name": "raw", "version": "0", **info}
    result = {"protocolVersion": revision, "capabilities": capabilities or {}, "serverInfo": told}
    await raw.send(answer(asked["id"], result))


@pytest.mark.full
async def test_custom_requests_do_not_grow_the_reader_cache() -> None:
    class Echo(bindings(NEW).Server):  # type: ignore[misc]
        @handles(ECHO)
        async def answer(self, params: Any, ctx: Any) -> Any:
            return params

    readers = []
    for _ in range(3):
        left, right = pair()
        own = make_client(STATELESS)
        async with running(serve(right, Echo(), revisions=[NEW])), own.connected(left):
            for said in ({"_meta": None}, {"_meta": 5}, {"_meta": {"a": 1}, "b": 2}):
                assert (await own.request(ECHO, said)).get("b") == said.get("b")
        readers.append(jsonrpc.answer_reader.cache_info().currsize)
    assert readers[0] == readers[-1]


async def test_colliding_fields_of_server_info_and_progress_are_dropped() -> None:
    async def old(raw: Raw) -> None:
        await welcome(raw, OLD, {"tools": {}}, title=5, icons="none")
        assert await raw.receive() == INITIALIZED
        asked = await raw.receive()
        told = {"progressToken": asked["params"]["_meta"]["progressToken"], "progress": 1, "message": 5}
        await raw.send(notification("notifications/progress", told), answer(asked["id"], {"content": []}))

    progress: list[Any] = []
    async with scripted(make_client(NEW), old, OLD) as client:
        assert (client.server_info.name, client.server_info.title) == ("raw", None)
        await client.with_options(on_progress=progress.append).call_tool("x")
    assert [(one.progress, one.message) for one in progress] == [(1, None)]


async def test_a_server_may_send_requests_as_soon_as_the_handshake_ends() -> None:
    answers: list[Any] = []

    async def hasty(raw: Raw) -> None:
        await raw.send(refusal((await raw.receive())["id"], -32601))
        result = {"protocolVersion": NEW, "capabilities": {}, "serverInfo": {"name": "raw", "version": "0"}}
        await raw.send(answer((await raw.receive())["id"], result), request("r", "roots/list"))
        answers.extend([await raw.receive(), await raw.receive()])

    async with scripted(make_client(STATELESS), hasty, NEW):
        await until(lambda: len(answers) == 2)
    assert INITIALIZED in answers
    assert [one["result"]["roots"] for one in answers if "id" in one] == [[{"uri": "file:///home"}]]


async def test_a_ping_bypasses_the_cache_and_respects_the_timeout() -> None:
    types = bindings(STATELESS).types

    class Lasting(type(make_server(STATELESS))):  # type: ignore[misc]
        slow = False

        async def discover(self, params: Any, ctx: Any) -> Any:
            await anyio.sleep(30 if self.slow else 0)
            kept: Any = {"capabilities": types.ServerCapabilities(), "ttl_ms": 60_000, "cache_scope": "public"}
            return types.DiscoverResult(supported_versions=[STATELESS], **kept)

    left, right = pair()
    client, server = make_client(NEW), Lasting()
    client.cache = ResultCache()
    ours = Recording(left, STATELESS)
    async with running(serve(right, server, revisions=[STATELESS])), client.connected(ours):
        before = ours.methods().count("server/discover")
        for _ in range(2):
            await client.ping()
        assert ours.methods().count("server/discover") == before + 2
        server.slow = True
        await refused(client.with_options(timeout=0.05).ping(), RequestTimeout)


async def test_a_notification_unknown_to_the_server_revision_is_not_sent() -> None:
    async with bridged(NEW, STATELESS) as (client, _, ours):
        methods = bindings(NEW).methods.METHODS
        for name, params in (("notifications/cancelled", {}), ("notifications/roots/list_changed", None)):
            method = methods[name]
            await client.notify(method, None if params is None else jsonrpc.typed_params(method, params))
        await client.ping()
        assert not [name for name in ours.methods() if name.startswith("notifications/")]


async def test_filters_with_the_same_resource_share_one_subscription() -> None:
    async with bridged(STATELESS, NEW) as (client, server, ours):

        async def follow(seconds: float) -> None:
            async with client.subscribed(filter_of(resource_subscriptions=[URI])) as agreed:
                assert agreed.resource_subscriptions == [URI]
                await anyio.sleep(seconds)
                assert server.subscribed == [URI]

        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(follow, number * 0.02)
        assert server.subscribed == []
        named = [name for name in ours.methods() if "subscribe" in name]
        assert named == ["resources/subscribe", "resources/unsubscribe"]


async def test_a_refused_resource_is_left_out_of_the_agreed_filter() -> None:
    async with bridged(STATELESS, NEW) as (client, server, _):
        follow = type(server).subscribe

        async def picky(self: Any, params: Any, ctx: Any) -> Any:
            if params.uri != URI:
                raise ProtocolError(-32002, "no such resource")
            return await follow(self, params, ctx)

        type(server).subscribe = picky
        async with client.subscribed(filter_of(resource_subscriptions=["file:///none", URI])) as agreed:
            assert agreed.resource_subscriptions == [URI]


async def test_a_subscription_that_is_cancelled_halfway_leaves_no_resource_subscribed() -> None:
    async with bridged(STATELESS, NEW) as (client, server, ours):
        follow = type(server).subscribe

        async def slow(self: Any, params: Any, ctx: Any) -> Any:
            await follow(self, params, ctx)
            await anyio.sleep_forever()

        type(server).subscribe = slow
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                for _ in range(2):  # the second one waits for the first
                    tasks.start_soon(client.subscribed(filter_of(resource_subscriptions=[URI])).__aenter__)
                await until(lambda: bool(server.subscribed))
                scope.cancel()
        await until(lambda: server.subscribed == [])
        named = [name for name in ours.methods() if "subscribe" in name]
        assert named == ["resources/subscribe", "resources/unsubscribe"]


def lost(asked: Any, error: Exception) -> Any:
    """Return the report of a transport that could not deliver a request."""
    return Lost(asked["id"], error)


async def test_log_level_and_subscriptions_are_restored_after_a_lost_session() -> None:
    said, capabilities = list[Any](), {"tools": {}, "logging": {}, "resources": {"subscribe": True}}

    async def forgetful(raw: Raw) -> None:
        await welcome(raw, NEW, capabilities)
        while said.count("tools/call") < 3:
            asked = await raw.receive()
            said.append(asked["method"])
            if asked["method"] == "tools/call" and said.count("tools/call") == 1:
                await raw.send(lost(asked, SessionLost("forgotten")))
                await welcome(raw, NEW, capabilities)
            elif "id" in asked:
                await raw.send(answer(asked["id"], {"content": []} if asked["method"] == "tools/call" else {}))

    level = {bindings(STATELESS).REVISION.meta_keys["log_level"]: "error"}
    async with scripted(make_client(STATELESS), forgetful, NEW) as client:
        async with client.subscribed(filter_of(resource_subscriptions=[URI])):
            await client.call_tool("x", meta=level)
        await client.call_tool("x", meta=level)
    subscribe, unsubscribe, level_set = "resources/subscribe", "resources/unsubscribe", "logging/setLevel"
    once = [subscribe, level_set, "tools/call"]
    assert [one for one in said if not one.startswith("notifications/")] == [*once, *once, unsubscribe, "tools/call"]


async def test_a_client_with_a_refused_listen_stream_continues() -> None:
    refused, more = anyio.Event(), {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    discovered = {"supportedVersions": [STATELESS], "capabilities": {"tools": {"listChanged": True}}, **more}

    async def strict(raw: Raw) -> None:
        while (asked := await raw.receive())["method"] != "tools/call":
            match asked["method"]:
                case "subscriptions/listen":
                    await raw.send(lost(asked, AuthorizationError("not you")))
                    refused.set()
                case "initialize":
                    await raw.send(refusal(asked["id"], -32601))
                case "server/discover":
                    await raw.send(answer(asked["id"], discovered))
        await raw.send(answer(asked["id"], {"resultType": "complete", "content": []}))

    async with scripted(make_client(NEW), strict, STATELESS) as client:
        await refused.wait()
        assert (await client.call_tool("x")).content == []
