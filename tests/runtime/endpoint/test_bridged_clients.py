"""A client of each revision talks to servers of all others; what it sends is held against the server's schema."""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from mcp_bindgen.bridging.step import NotConvertible
from mcp_bindgen.host.result_cache import ResultCache
from mcp_bindgen.runtime import ProtocolError, Request, connect, handles, serve
from mcp_bindgen.runtime.transports.memory import pair
from tests.support.checked_connections import (
    STATEFUL,
    STATELESS,
    Raw,
    Recording,
    answer,
    bindings,
    notification,
    running,
    until,
)

REVISIONS = [*STATEFUL, STATELESS]
PAIRS = [(home, wire) for home, wire in itertools.product(REVISIONS, REVISIONS) if home != wire]
URI = "file:///notes.txt"
FORM = {"message": "Name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi?"}}], "maxTokens": 5}

every_pair = pytest.mark.parametrize(("home", "wire"), PAIRS)


def make_server(revision: str) -> Any:
    """Make a server of one revision that asks, tells and is subscribed to."""
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
            values = [params.argument.value + "!"]
            return types.CompleteResult(completion=types.CompleteResultCompletion(values=values))

    if revision != STATELESS:

        async def subscribe(self: Any, params: Any, ctx: Any) -> Any:
            self.subscribed.append(params.uri)
            return types.EmptyResult()

        async def unsubscribe(self: Any, params: Any, ctx: Any) -> Any:
            self.subscribed.remove(params.uri)
            return types.EmptyResult()

        Full.subscribe, Full.unsubscribe = subscribe, unsubscribe
    return Full()


def make_client(revision: str) -> Any:
    """Make a client of one revision that answers everything and writes down what it is told."""
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
            content = types.TextContent(text="sampled")
            return types.CreateMessageResult(role="assistant", model="m", content=content)

        async def on_list_roots(self, *told: Any) -> Any:
            return types.ListRootsResult(roots=[types.Root(uri="file:///home")])

    if "elicitation/create" in package.methods.METHODS:

        async def on_elicit(self: Any, params: Any, ctx: Any) -> Any:
            return types.ElicitResult(action="accept", content={"name": "Ada"})

        Answering.on_elicit = on_elicit
    return Answering()


@asynccontextmanager
async def bridged(home: str, wire: str) -> AsyncGenerator[tuple[Any, Any, Recording]]:
    """Connect a client to a server of another revision; both must keep to the schema of the server's."""
    left, right = pair()
    ours, theirs = Recording(left, wire), Recording(right, wire)
    server, client = make_server(wire), make_client(home)
    async with running(serve(theirs, server, revisions=[wire])), client.connected(ours) as connected:
        assert connected is client
        yield client, server, ours
    ours.check()
    theirs.check()


@every_pair
async def test_calls_have_the_types_of_the_client_and_the_messages_of_the_server(home: str, wire: str) -> None:
    types = bindings(home).types
    async with bridged(home, wire) as (client, _, ours):
        assert (client.revision, client.wire_revision) == (home, wire)
        assert isinstance(client.server_info, types.Implementation)
        assert [tool.name async for tool in client.iter_tools()] == ["hi"]
        progress: list[Any] = []
        result = await client.with_options(on_progress=progress.append).call_tool("hi", {})
        assert isinstance(result, types.CallToolResult)
        assert result.content == [types.TextContent(text="done")]
        assert [(type(one).__name__, one.progress, one.total) for one in progress] == [
            ("ProgressNotificationParams", 1, 2)
        ]
        reference = types.PromptReference(name="x")
        completed = await client.complete(reference, types.CompleteRequestParamsArgument(name="a", value="b"))
        assert completed.completion.values == ["b!"]
        with pytest.raises(ProtocolError, match="no such thing"):
            await client.call_tool("fails")
    assert {"tools/list", "tools/call", "completion/complete"} <= set(ours.methods())


@every_pair
async def test_handlers_of_the_client_answer_whatever_the_era(home: str, wire: str) -> None:
    async with bridged(home, wire) as (client, _, _):
        expected = {"sample": "sampled", "roots": "file:///home"}
        if min(home, wire) >= "2025-06-18":
            expected["ask"] = "Ada"
        for name, text in expected.items():
            assert (await client.call_tool(name)).content[0].text == text


@every_pair
async def test_news_reach_a_client_as_its_era_has_it(home: str, wire: str) -> None:
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
            client.told = [one for one in client.told if one != "file:///other.txt"]  # the server's own doing
            assert client.told == [URI, "tools"]
            await client.unsubscribe(URI)
            await server.broadcast(lambda one: one.notify_resource_updated(URI))
            await client.list_tools()
            if wire == STATELESS:
                assert client.told == [URI, "tools"]
    assert ours.params("resources/unsubscribe") == ([{"uri": URI}] if wire != STATELESS else [])


@every_pair
async def test_levels_of_log_messages_are_said_as_the_server_wants_it(home: str, wire: str) -> None:
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


async def test_what_a_server_cannot_be_asked_is_an_error_before_anything_is_sent() -> None:
    async with bridged("2026-07-28", "2025-11-25") as (client, _, ours):
        sent = len(ours.sent)
        method = bindings("2026-07-28").methods.METHODS["server/discover"]
        params = method.params(meta=client.metadata(bindings("2026-07-28").types.RequestMetaObject, None))
        with pytest.raises(NotConvertible, match=r"server/discover.*MCP 2025-11-25"):
            await client.request(method, params)
        assert len(ours.sent) == sent


async def test_a_member_that_a_later_revision_has_another_use_for_does_no_harm(caplog: Any) -> None:
    caplog.set_level(logging.DEBUG)
    left, right = pair()
    client, raw = make_client("2025-11-25"), Raw(right)

    async def old() -> None:
        asked = await raw.receive()
        result = {
            "protocolVersion": "2024-11-05",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "raw", "version": "0"},
        }
        await raw.send(answer(asked["id"], result))
        assert await raw.receive() == notification("notifications/initialized")
        asked = await raw.receive()
        tool = {"name": "hi", "title": 5, "icons": "none", "own": 1, "inputSchema": {"type": "object"}}
        await raw.send(answer(asked["id"], {"tools": [tool]}))

    async with running(old()), client.connected(left):
        (tool,) = (await client.list_tools()).tools
    await raw.close()
    assert (tool.name, tool.title, tool.icons, tool.model_extra) == ("hi", None, None, {"own": 1})
    assert client.invalid_items == ()
    assert "icons, title" in caplog.text


async def test_results_are_cached_as_the_server_says() -> None:
    class Lasting(type(make_server(STATELESS))):  # type: ignore[misc]
        async def list_tools(self, params: Any, ctx: Any) -> Any:
            found = await super().list_tools(params, ctx)
            return found.model_copy(update={"ttl_ms": 60_000})

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


async def test_the_nearest_of_several_clients_goes_on() -> None:
    left, right = pair()
    clients = [make_client("2024-11-05"), make_client("2025-11-25")]
    serving = serve(right, make_server("2025-06-18"), revisions=["2025-06-18"])
    async with running(serving), connect(left, *clients) as client:
        assert client is clients[1]
        assert (await client.call_tool("hi")).content[0].text == "done"


async def test_methods_of_ones_own_pass_as_they_are() -> None:
    echo: Any = Request("acme/echo", sender="client", params=dict[str, Any], result=dict[str, Any])
    for home, wire in (("2025-11-25", STATELESS), (STATELESS, "2025-11-25")):

        class Echo(bindings(wire).Server):  # type: ignore[misc]
            @handles(echo)
            async def answer(self, params: Any, ctx: Any) -> Any:
                return {"got": params["x"]}

        left, right = pair()
        client = make_client(home)
        async with running(serve(right, Echo(), revisions=[wire])), client.connected(left):
            assert (await client.request(echo, {"x": 1}))["got"] == 1
            with pytest.raises(ProtocolError, match="acme/none"):
                await client.request(replace(echo, name="acme/none"), {})
