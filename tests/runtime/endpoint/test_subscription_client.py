"""Subscriptions from the client's side: over stdio and HTTP, to their end or to a lost stream and back (8 s)."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_bindgen.host.result_cache import ResultCache
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.runtime import (
    AuthorizationError,
    ConnectionClosed,
    MethodNotFound,
    ProtocolError,
    RequestTimeout,
    connect,
    serve,
)
from mcp_bindgen.runtime.session import subscription_client as listening_module
from mcp_bindgen.runtime.session.subscriptions import Subscription
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.v2025_11_25 import Client as OldClient
from mcp_bindgen.v2026_07_28 import Client, Server
from mcp_bindgen.v2026_07_28 import types as mcp
from tests.runtime.entrypoints.test_connect import discovered, ends, listening
from tests.runtime.entrypoints.test_connect import server as echo
from tests.support.checked_connections import (
    STATELESS,
    Raw,
    Recording,
    answer,
    bounded,
    notification,
    refusal,
    running,
    until,
)
from tests.support.scripted_http_server import Heard, serving

ID = "io.modelcontextprotocol/subscriptionId"
TOOLS = mcp.SubscriptionFilter(tools_list_changed=True)


class Shop(Server):
    """A server that has tools and resources, which change."""

    info = mcp.Implementation(name="shop", version="1")

    async def list_tools(self, params: Any, ctx: Any) -> mcp.ListToolsResult:
        return mcp.ListToolsResult(tools=[], ttl_ms=60_000)

    async def list_resources(self, params: Any, ctx: Any) -> mcp.ListResourcesResult:
        return mcp.ListResourcesResult(resources=[])


class Customer(Client):
    """A client that writes down what it hears."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    async def on_tool_list_changed(self, params: Any, ctx: Any) -> None:
        self.heard.append("tools")

    async def on_resource_updated(self, params: Any, ctx: Any) -> None:
        self.heard.append(params.uri)

    async def on_subscriptions_acknowledged(self, params: Any, ctx: Any) -> None:
        self.heard.append("acknowledged")


async def _updated(uri: str, link: Any) -> None:
    await link.notify_resource_updated(uri)


async def tools(server: Any) -> None:
    """Tells all that listen that the tools have changed."""
    await server.broadcast(lambda link: link.notify_tool_list_changed())


@asynccontextmanager
async def over_http(shop: Any) -> AsyncGenerator[Any]:
    app = HttpApp(shop)
    async with app.lifespan(), listening(app) as (url, _), connect(f"{url}/mcp", Customer) as client:
        yield client


@asynccontextmanager
async def in_memory(shop: Any) -> AsyncGenerator[Any]:
    async with ends() as (left, right):
        ours = Recording(left, STATELESS)
        async with running(serve(right, shop)), connect(ours, Customer) as client:
            yield client
    ours.check()


@pytest.mark.parametrize("way", [over_http, in_memory])
def test_changes_are_heard_while_the_block_lasts(way: Callable[[Any], Any]) -> None:
    @bounded()
    async def run() -> None:
        shop = Shop()
        async with way(shop) as client:
            wanted = mcp.SubscriptionFilter(
                tools_list_changed=True, prompts_list_changed=True, resource_subscriptions=["shop:1"]
            )
            async with client.subscribed(wanted) as agreed:
                assert isinstance(agreed, mcp.SubscriptionFilter)
                assert agreed.tools_list_changed is True
                assert agreed.resource_subscriptions == ["shop:1"]
                assert agreed.prompts_list_changed is None  # there are none
                await tools(shop)
                await shop.broadcast(lambda link: link.notify_resource_updated("shop:1/a"))
                await shop.broadcast(lambda link: link.notify_resource_updated("shop:2"))
                await tools(shop)
                await until(lambda: client.heard.count("tools") == 2)
                assert client.heard == ["acknowledged", "tools", "shop:1/a", "tools"]
                assert (await client.list_tools()).tools == []
            await until(lambda: not [link for link in shop.audience if isinstance(link, Subscription)])
            await tools(shop)
            await client.list_tools()
            assert client.heard.count("tools") == 2

    run()


@pytest.mark.parametrize("way", [over_http, in_memory])
def test_several_subscriptions_at_once(way: Callable[[Any], Any]) -> None:
    @bounded()
    async def run() -> None:
        shop = Shop()
        async with way(shop) as client, anyio.create_task_group() as tasks:
            agreed: list[Any] = []
            leave = anyio.Event()

            async def follow(uri: str) -> None:
                async with client.with_options(timeout=5).subscribed(
                    mcp.SubscriptionFilter(resource_subscriptions=[uri])
                ) as found:
                    agreed.append((uri, found.resource_subscriptions))
                    await leave.wait()

            for number in range(5):
                tasks.start_soon(follow, f"shop:{number}")
            await until(lambda: len(agreed) == 5)
            assert all(uris == [uri] for uri, uris in agreed)
            for uri in [uri for uri, _ in agreed]:
                await shop.broadcast(partial(_updated, uri))
            await until(lambda: len(client.heard) == 10)
            assert sorted(client.heard) == ["acknowledged"] * 5 + [f"shop:{number}" for number in range(5)]
            leave.set()

    run()


async def test_over_stdio(tmp_path: Path) -> None:
    script = tmp_path / "shop.py"
    script.write_text(
        "from mcp_bindgen.runtime import run\n"
        "from mcp_bindgen.v2026_07_28 import Server, types as mcp\n"
        "class Shop(Server):\n"
        "    async def list_tools(self, params, ctx): return mcp.ListToolsResult(tools=[])\n"
        "    async def call_tool(self, params, ctx):\n"
        "        await self.broadcast(lambda link: link.notify_tool_list_changed())\n"
        "        return mcp.CallToolResult(content=[])\n"
        "run(Shop())\n"
    )
    async with connect([sys.executable, str(script)], Customer) as client:
        async with client.subscribed(TOOLS):
            await client.call_tool("change")
            await until(lambda: "tools" in client.heard)
        await client.call_tool("change")
        await client.list_tools()
    assert client.heard == ["acknowledged", "tools"]


def end_all(shop: Any) -> None:
    """Ends all subscriptions in good order, as a server does that stops."""
    for link in shop.audience:
        if isinstance(link, Subscription):
            link.end()


def _has_heard(client: Any, count: int) -> bool:
    return bool(client.heard.count("tools") == count)


def _has_changed(client: Any, changes: int) -> bool:
    return bool(client.changes > changes)


@pytest.mark.parametrize("way", [over_http, in_memory])
def test_a_stream_that_the_server_ends_in_good_order_is_opened_again(way: Callable[[Any], Any]) -> None:
    @bounded()
    async def run() -> None:
        shop = Shop()
        async with way(shop) as client, client.subscribed(TOOLS):
            for turn in (1, 2, 3):
                await tools(shop)
                await until(partial(_has_heard, client, turn))
                changes = client.changes
                end_all(shop)
                await until(partial(_has_changed, client, changes))  # something may have been missed
                await until(lambda: any(isinstance(one, Subscription) and one.ready for one in shop.audience))
        assert client.heard == ["acknowledged", "tools", "tools", "tools"]

    run()


async def test_a_server_that_ends_each_stream_at_once_is_asked_ever_more_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listening_module, "_SHORTEST", 0.01)
    streams: list[Heard] = []

    async def play(heard: Heard) -> None:
        if heard.name == "server/discover":
            await heard.result(discovered(STATELESS))
            return
        streams.append(heard)
        await heard.event(acknowledged(heard.id, toolsListChanged=True))
        await heard.event(answer(heard.id, {"resultType": "complete", "_meta": {ID: heard.id}}))

    async with serving(play) as script, connect(script.url, Customer) as client, client.subscribed(TOOLS):
        await anyio.sleep(1)
    assert 4 <= len(streams) <= 9
    assert client.heard == ["acknowledged"]


# --- what goes wrong ------------------------------------------------------------------------------------------


async def test_errors_of_the_block_come_out() -> None:
    async with in_memory(Shop()) as client:
        with pytest.raises(LookupError, match="mine"):
            async with client.subscribed(TOOLS):
                raise LookupError("mine")
        assert (await client.list_tools()).tools == []


async def test_stateful_servers_have_no_subscriptions() -> None:
    left, right = pair()
    async with running(serve(right, echo("2025-11-25"))), connect(left, OldClient) as client:
        with pytest.raises(MethodNotFound, match="subscriptions/listen"):
            async with client.subscribed(TOOLS):
                pass


@asynccontextmanager
async def played(play: Callable[[Raw, Any], Any]) -> AsyncGenerator[Any]:
    """A client of a server that does what a function says when it is asked to listen."""

    async def run() -> None:
        raw = Raw(right)
        try:
            await raw.send(answer((await raw.receive())["id"], discovered(STATELESS)))
            asked = await raw.receive()
            assert asked["method"] == "subscriptions/listen"
            await play(raw, asked["id"])
            while True:
                await raw.receive()
        except (AssertionError, ConnectionClosed) as error:
            if "closed" not in str(error):
                raise

    async with ends() as (left, right), running(run()), connect(left, Customer) as client:
        yield client


def told(id_: Any, method: str = "notifications/tools/list_changed", **params: Any) -> dict[str, Any]:
    """A notification of a subscription."""
    return notification(method, {"_meta": {ID: id_}, **params})


def acknowledged(id_: Any, **agreed: Any) -> dict[str, Any]:
    return told(id_, "notifications/subscriptions/acknowledged", notifications=agreed)


async def test_a_server_that_refuses() -> None:
    async def refuse(raw: Raw, id_: Any) -> None:
        await raw.send(refusal(id_, -32601))

    async with played(refuse) as client:
        with pytest.raises(ProtocolError, match="-32601"):
            async with client.subscribed(TOOLS):
                pass

    async def end(raw: Raw, id_: Any) -> None:
        await raw.send(answer(id_, {"resultType": "complete", "_meta": {ID: id_}}))

    async with played(end) as client:
        with pytest.raises(ConnectionClosed, match="the server ended the subscription"):
            async with client.subscribed(TOOLS):
                pass

    async def leave(raw: Raw, id_: Any) -> None:
        await raw.close()

    async with played(leave) as client:
        with pytest.raises(ConnectionClosed, match="the other side closed the connection"):
            async with client.subscribed(TOOLS):
                pass


async def test_a_server_that_does_not_acknowledge_in_time() -> None:
    async def wait(raw: Raw, id_: Any) -> None:
        taken_back = await raw.receive()
        assert taken_back["method"] == "notifications/cancelled"
        await raw.send(acknowledged(id_, toolsListChanged=True), told(id_))

    async with played(wait) as client:
        with pytest.raises(RequestTimeout, match="subscriptions/listen was not acknowledged in time"):
            async with client.with_options(timeout=0.05).subscribed(TOOLS):
                pass
        await anyio.sleep(0.05)
        assert client.heard == []  # too late


async def test_messages_of_other_subscriptions_and_of_none() -> None:
    async def speak(raw: Raw, id_: Any) -> None:
        await raw.send(acknowledged(id_ + 1, toolsListChanged=True), acknowledged("x"), told(id_ + 1))
        await raw.send(acknowledged(id_, toolsListChanged=True), told(id_), told(id_ - 1), told(77))
        await raw.send(notification("notifications/tools/list_changed"), told(id_))

    async with played(speak) as client, client.subscribed(TOOLS) as agreed:
        assert agreed.tools_list_changed is True
        await until(lambda: client.heard.count("tools") == 3)  # one belongs to no subscription
        await anyio.sleep(0.02)
    assert client.heard.count("tools") == 3


async def test_over_stdio_the_server_may_take_it_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mcp_bindgen")

    async def end(raw: Raw, id_: Any) -> None:
        await raw.send(acknowledged(id_), notification("notifications/cancelled", {"requestId": id_}))

    async with played(end) as client, client.subscribed(TOOLS):
        await until(lambda: "the server ended the subscription" in caplog.text)


# --- lost streams ---------------------------------------------------------------------------------------------


async def test_a_lost_stream_is_opened_again_and_nobody_is_told_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening_module, "_SHORTEST", 0.02)
    streams: list[Heard] = []
    go, cut = anyio.Event(), anyio.Event()

    async def play(heard: Heard) -> None:
        hints = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public"}
        if heard.name == "server/discover":
            await heard.result(discovered(STATELESS))
        elif heard.name == "tools/list":
            await heard.result({"tools": [], **hints})
        else:
            streams.append(heard)
            match len(streams):
                case 2:  # nothing of the protocol
                    await heard.end(503)
                case 3:  # the connection breaks off at once
                    await heard.begin(200, "text/event-stream")
                case 4:  # a server that is stopping, or has too much to do
                    await heard.json(refusal(None, -32600), 503)
                case 5:
                    await heard.json(refusal(None, -32000), 429)
                case number:
                    await heard.event(acknowledged(heard.id, toolsListChanged=True))
                    if number == 1:
                        await go.wait()
                    await heard.event(told(heard.id))
                    if number == 1:
                        await cut.wait()
                    if number == 6:
                        await heard.until_gone()

    async with serving(play) as script:
        cache = ResultCache()
        async with connect(script.url, Customer, cache=cache) as client:
            async with client.subscribed(TOOLS):
                await client.list_tools()
                await client.list_tools()
                assert len(script.called("tools/list")) == 1
                go.set()
                await until(lambda: client.heard.count("tools") == 1)
                await client.list_tools()
                assert len(script.called("tools/list")) == 2
                cut.set()
                await until(lambda: len(streams) == 2)
                await client.list_tools()  # something may have been missed
                assert len(script.called("tools/list")) == 3
                await until(lambda: client.heard.count("tools") == 2)
                assert len(streams) == 6
            await until(lambda: streams[5].gone_at)
        assert client.heard == ["acknowledged", "tools", "tools"]
        assert len({heard.id for heard in streams}) == 6
        pauses = [later.at - earlier.at for earlier, later in pairwise(streams[1:])]
        assert all(pause > 0.01 for pause in pauses)


async def test_a_server_that_no_longer_offers_it_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listening_module, "_SHORTEST", 0.01)
    caplog.set_level(logging.INFO, "mcp_bindgen")
    streams: list[Heard] = []

    async def play(heard: Heard) -> None:
        if heard.name == "server/discover":
            await heard.result(discovered(STATELESS))
            return
        streams.append(heard)
        if len(streams) == 1:
            await heard.event(acknowledged(heard.id, toolsListChanged=True))
        else:
            await heard.json(refusal(heard.id, -32601), 404)

    async with serving(play) as script, connect(script.url, Customer) as client, client.subscribed(TOOLS):
        await until(lambda: "-32601" in caplog.text)
        await anyio.sleep(0.1)
        assert len(streams) == 2


async def test_a_server_that_agrees_to_less_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listening_module, "_SHORTEST", 0.01)
    streams: list[Heard] = []

    async def play(heard: Heard) -> None:
        if heard.name == "server/discover":
            await heard.result(discovered(STATELESS))
            return
        streams.append(heard)
        await heard.event(acknowledged(heard.id, **({"toolsListChanged": True} if len(streams) == 1 else {})))
        if len(streams) > 1:
            await heard.until_gone()

    async with serving(play) as script, connect(script.url, Customer) as client, client.subscribed(TOOLS):
        await until(lambda: "the server agrees to another subscription than before" in caplog.text)


async def test_the_pauses_grow_and_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = listening_module.Listening(Customer(), {}, {}, lambda: None)
    pauses = [listener._pause() for _ in range(40)]
    assert 0.125 <= pauses[0] <= 0.25
    assert all(15 <= pause <= 30 for pause in pauses[10:])
    assert len(set(pauses)) > 30
    listener.acknowledge(TOOLS)
    assert listener._pause() >= 15  # its stream has not lasted
    listener.acknowledge(TOOLS)
    await anyio.sleep(0.02)
    monkeypatch.setattr(listening_module, "_STEADY", 0.01)
    assert listener._pause() <= 0.25
    assert listener._pause() > 0.125


async def test_authorization_that_is_not_to_be_had_for_a_moment_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening_module, "_SHORTEST", 0.01)
    shop = Shop()
    async with in_memory(shop) as client:
        request, failures = client.link.request, [True, True, False]

        async def unauthorized(*arguments: Any, **more: Any) -> Any:
            if failures and len(client.heard) == 1:
                raise AuthorizationError("the issuer is away", is_temporary=failures.pop(0))
            return await request(*arguments, **more)

        monkeypatch.setattr(client.link, "request", unauthorized)

        async def subscribe() -> None:
            async with client.subscribed(TOOLS):
                end_all(shop)
                await anyio.sleep(5)

        with pytest.raises(AuthorizationError):
            await subscribe()
        assert failures == []
