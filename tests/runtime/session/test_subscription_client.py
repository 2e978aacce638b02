"""Subscriptions of a client over stdio and HTTP: regular ends, lost streams, reconnections (8 s)."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcp_bindgen import runtime
from mcp_bindgen.host.result_cache import ResultCache
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.runtime.session import client as listening_module
from mcp_bindgen.runtime.session.subscriptions import Subscription
from mcp_bindgen.v2025_11_25 import Client as OldClient
from mcp_bindgen.v2026_07_28 import Client, Server
from mcp_bindgen.v2026_07_28 import types as mcp
from tests.harness import checked_connections as checked
from tests.harness.forks import PYTHON
from tests.harness.scripted_http_server import Heard, serving
from tests.runtime.test_connecting import discovered, ends, listening
from tests.runtime.test_connecting import server as echo

ID = "io.modelcontextprotocol/subscriptionId"
TOOLS = mcp.SubscriptionFilter(tools_list_changed=True)


class Shop(Server):
    """Server with changing tools and resources."""

    info = mcp.Implementation(name="shop", version="1")

    async def list_tools(self, params: Any, ctx: Any) -> mcp.ListToolsResult:
        return mcp.ListToolsResult(tools=[], ttl_ms=60_000)

    async def list_resources(self, params: Any, ctx: Any) -> mcp.ListResourcesResult:
        return mcp.ListResourcesResult(resources=[])


class Customer(Client):
    """Client that records its notifications."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    async def on_tool_list_changed(self, params: Any, ctx: Any) -> None:
        self.heard.append("tools")

    async def on_resource_updated(self, params: Any, ctx: Any) -> None:
        self.heard.append(params.uri)

    async def on_subscriptions_acknowledged(self, params: Any, ctx: Any) -> None:
        self.heard.append("acknowledged")


async def tools(server: Any) -> None:
    """Notify all subscribers that the list of tools has changed."""
    await server.broadcast(lambda link: link.notify_tool_list_changed())


async def updated(server: Any, *uris: str) -> None:
    """Notify all subscribers that resources have changed."""
    for uri in uris:
        await server.broadcast(lambda link, uri=uri: link.notify_resource_updated(uri))


@asynccontextmanager
async def over_http(shop: Any) -> AsyncGenerator[Any]:
    app = HttpApp(shop)
    async with app.lifespan(), listening(app) as (url, _), runtime.connect(f"{url}/mcp", Customer) as client:
        yield client


@asynccontextmanager
async def in_memory(shop: Any) -> AsyncGenerator[Any]:
    async with ends() as (left, right):
        ours = checked.Recording(left, checked.STATELESS)
        async with checked.running(runtime.serve(right, shop)), runtime.connect(ours, Customer) as client:
            yield client
    ours.check()


@pytest.mark.parametrize("way", [over_http, in_memory])
async def test_a_client_gets_change_notifications_while_the_block_runs(way: Callable[[Any], Any]) -> None:
    shop = Shop()
    async with way(shop) as client:
        lists: Any = {"tools_list_changed": True, "prompts_list_changed": True}
        async with client.subscribed(mcp.SubscriptionFilter(resource_subscriptions=["shop:1"], **lists)) as agreed:
            assert isinstance(agreed, mcp.SubscriptionFilter)
            assert agreed.tools_list_changed is True
            assert agreed.resource_subscriptions == ["shop:1"]
            assert agreed.prompts_list_changed is None  # the server has no prompts
            await tools(shop)
            await updated(shop, "shop:1/a", "shop:2")
            await tools(shop)
            await checked.until(lambda: client.heard.count("tools") == 2)
            assert client.heard == ["acknowledged", "tools", "shop:1/a", "tools"]
            assert (await client.list_tools()).tools == []
        await checked.until(lambda: not [link for link in shop.audience if isinstance(link, Subscription)])
        await tools(shop)
        await client.list_tools()
        assert client.heard.count("tools") == 2


@pytest.mark.parametrize("way", [over_http, in_memory])
async def test_a_client_may_have_several_subscriptions_at_once(way: Callable[[Any], Any]) -> None:
    shop = Shop()
    async with way(shop) as client, anyio.create_task_group() as tasks:
        agreed, leave = list[Any](), anyio.Event()
        uris = [f"shop:{number}" for number in range(5)]

        async def follow(uri: str) -> None:
            wanted = mcp.SubscriptionFilter(resource_subscriptions=[uri])
            async with client.with_options(timeout=5).subscribed(wanted) as found:
                assert found.resource_subscriptions == [uri]
                agreed.append(uri)
                await leave.wait()

        for uri in uris:
            tasks.start_soon(follow, uri)
        await checked.until(lambda: len(agreed) == 5)
        await updated(shop, *uris)
        await checked.until(lambda: len(client.heard) == 10)
        assert sorted(client.heard) == ["acknowledged"] * 5 + uris
        leave.set()


async def test_a_subscription_works_over_stdio(tmp_path: Path) -> None:
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
    async with runtime.connect([PYTHON, str(script)], Customer, probe_timeout=60) as client:
        async with client.subscribed(TOOLS):
            await client.call_tool("change")
            await checked.until(lambda: "tools" in client.heard)
        await client.call_tool("change")
        await client.list_tools()
    assert client.heard == ["acknowledged", "tools"]


def end_all(shop: Any) -> None:
    """End all subscriptions regularly, like a server that stops."""
    for link in shop.audience:
        if isinstance(link, Subscription):
            link.leave()


@pytest.mark.parametrize("way", [over_http, in_memory])
async def test_a_stream_that_the_server_ends_regularly_is_reopened(way: Callable[[Any], Any]) -> None:
    shop = Shop()
    async with way(shop) as client, client.with_options(timeout=60).subscribed(TOOLS):
        for turn in (1, 2, 3):
            await tools(shop)
            await checked.until(lambda turn=turn: client.heard.count("tools") == turn)  # type: ignore[misc]
            changes = client.changes
            end_all(shop)  # notifications may have been missed:
            await checked.until(lambda changes=changes: client.changes > changes)  # type: ignore[misc]
            await checked.until(lambda: any(isinstance(one, Subscription) and one.ready for one in shop.audience))
    assert client.heard == ["acknowledged", "tools", "tools", "tools"]


async def test_reconnections_slow_down_if_the_server_ends_each_stream_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listening_module, "_SHORTEST_PAUSE", 0.01)
    streams: list[Heard] = []

    async def play(heard: Heard) -> None:
        if heard.name == "server/discover":
            await heard.result(discovered(checked.STATELESS))
            return
        streams.append(heard)
        await heard.event(acknowledged(heard.id, toolsListChanged=True))
        await heard.event(checked.answer(heard.id, {"resultType": "complete", "_meta": {ID: heard.id}}))

    async with serving(play) as script, runtime.connect(script.url, Customer) as client, client.subscribed(TOOLS):
        await anyio.sleep(1)
    assert 4 <= len(streams) <= 9
    assert client.heard == ["acknowledged"]


# --- failures -------------------------------------------------------------------------------------------------


async def test_an_error_in_the_block_is_raised() -> None:
    async with in_memory(Shop()) as client:
        with pytest.raises(LookupError, match="mine"):
            async with client.subscribed(TOOLS):
                raise LookupError("mine")
        assert (await client.list_tools()).tools == []


async def test_a_subscription_to_a_stateful_server_is_an_error() -> None:
    async with checked.connected(OldClient(), echo("2025-11-25")) as connection:
        await checked.refused(subscribe(connection.client), runtime.MethodNotFound, match="subscriptions/listen")


async def subscribe(client: Any) -> None:
    """Subscribe and unsubscribe at once."""
    async with client.subscribed(TOOLS):
        pass


@asynccontextmanager
async def played(play: Callable[[checked.Raw, Any], Any]) -> AsyncGenerator[Any]:
    """Connect a client to a server; `play` scripts its answer to `subscriptions/listen`."""

    async def run() -> None:
        raw = checked.Raw(right)
        try:
            await raw.send(checked.answer((await raw.receive())["id"], discovered(checked.STATELESS)))
            asked = await raw.receive()
            assert asked["method"] == "subscriptions/listen"
            await play(raw, asked["id"])
            while True:
                await raw.receive()
        except (AssertionError, runtime.ConnectionClosed) as error:
            if "closed" not in str(error):
                raise

    async with ends() as (left, right), checked.running(run()), runtime.connect(left, Customer) as client:
        yield client


def told(id_: Any, method: str = "notifications/tools/list_changed", **params: Any) -> dict[str, Any]:
    """Return a notification of a subscription."""
    return checked.notification(method, {"_meta": {ID: id_}, **params})


def acknowledged(id_: Any, **agreed: Any) -> dict[str, Any]:
    return told(id_, "notifications/subscriptions/acknowledged", notifications=agreed)


async def test_a_refused_or_ended_subscription_is_an_error() -> None:
    async def refuse(raw: checked.Raw, id_: Any) -> None:
        await raw.send(checked.refusal(id_, -32601))

    async def end(raw: checked.Raw, id_: Any) -> None:
        await raw.send(checked.answer(id_, {"resultType": "complete", "_meta": {ID: id_}}))

    async def leave(raw: checked.Raw, id_: Any) -> None:
        await raw.close()

    for play, kind, words in (
        (refuse, runtime.ProtocolError, "-32601"),
        (end, runtime.ConnectionClosed, "the server ended the subscription"),
        (leave, runtime.ConnectionClosed, "the other side closed the connection"),
    ):
        async with played(play) as client:
            await checked.refused(subscribe(client), kind, match=words)


async def test_a_subscription_without_an_acknowledgement_times_out() -> None:
    async def wait(raw: checked.Raw, id_: Any) -> None:
        assert (await raw.receive())["method"] == "notifications/cancelled"
        await raw.send(acknowledged(id_, toolsListChanged=True), told(id_))

    async with played(wait) as client:
        hasty = client.with_options(timeout=0.05)
        await checked.refused(
            subscribe(hasty), runtime.RequestTimeout, match="subscriptions/listen was not acknowledged in time"
        )
        await anyio.sleep(0.05)
        assert client.heard == []  # too late


async def test_notifications_of_unknown_subscriptions_are_ignored() -> None:
    async def speak(raw: checked.Raw, id_: Any) -> None:
        await raw.send(acknowledged(id_ + 1, toolsListChanged=True), acknowledged("x"), told(id_ + 1))
        await raw.send(acknowledged(id_, toolsListChanged=True), told(id_), told(id_ - 1), told(77))
        await raw.send(checked.notification("notifications/tools/list_changed"), told(id_))

    async with played(speak) as client, client.subscribed(TOOLS) as agreed:
        assert agreed.tools_list_changed is True
        await checked.until(lambda: client.heard.count("tools") == 3)  # one of them belongs to no subscription
        await anyio.sleep(0.02)
    assert client.heard.count("tools") == 3


async def test_a_server_may_cancel_a_subscription(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mcp_bindgen")

    async def end(raw: checked.Raw, id_: Any) -> None:
        await raw.send(acknowledged(id_), checked.notification("notifications/cancelled", {"requestId": id_}))

    async with played(end) as client, client.subscribed(TOOLS):
        await checked.until(lambda: "the server ended the subscription" in caplog.text)


# --- lost streams ---------------------------------------------------------------------------------------------


async def test_a_lost_stream_is_reopened_without_a_second_acknowledgement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening_module, "_SHORTEST_PAUSE", 0.02)
    streams: list[Heard] = []
    go, cut = anyio.Event(), anyio.Event()

    async def play(heard: Heard) -> None:
        hints = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public"}
        if heard.name == "server/discover":
            await heard.result(discovered(checked.STATELESS))
        elif heard.name == "tools/list":
            await heard.result({"tools": [], **hints})
        else:
            streams.append(heard)
            match len(streams):
                case 2:  # an HTTP error without a message
                    await heard.end(503)
                case 3:  # the connection ends at once
                    await heard.begin(200, "text/event-stream")
                case 4:  # a server that stops or is overloaded
                    await heard.json(checked.refusal(None, -32600), 503)
                case 5:
                    await heard.json(checked.refusal(None, -32000), 429)
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
        async with runtime.connect(script.url, Customer, cache=ResultCache()) as client:
            async with client.subscribed(TOOLS):
                await client.list_tools()
                await client.list_tools()
                assert len(script.called("tools/list")) == 1
                go.set()
                await checked.until(lambda: client.heard.count("tools") == 1)
                await client.list_tools()
                assert len(script.called("tools/list")) == 2
                cut.set()
                await checked.until(lambda: len(streams) == 2)
                await client.list_tools()  # notifications may have been missed
                assert len(script.called("tools/list")) == 3
                await checked.until(lambda: client.heard.count("tools") == 2)
                assert len(streams) == 6
            await checked.until(lambda: streams[5].gone_at)
        assert (client.heard, len({heard.id for heard in streams})) == (["acknowledged", "tools", "tools"], 6)
        assert all(pause > 0.01 for pause in [later.at - earlier.at for earlier, later in pairwise(streams[1:])])


async def test_reconnections_stop_if_the_server_no_longer_offers_subscriptions(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listening_module, "_SHORTEST_PAUSE", 0.01)
    caplog.set_level(logging.INFO, "mcp_bindgen")
    streams: list[Heard] = []

    async def play(heard: Heard) -> None:
        if heard.name == "server/discover":
            await heard.result(discovered(checked.STATELESS))
            return
        streams.append(heard)
        if len(streams) == 1:
            await heard.event(acknowledged(heard.id, toolsListChanged=True))
        else:
            await heard.json(checked.refusal(heard.id, -32601), 404)

    async with serving(play) as script, runtime.connect(script.url, Customer) as client, client.subscribed(TOOLS):
        await checked.until(lambda: "-32601" in caplog.text)
        await anyio.sleep(0.1)
        assert len(streams) == 2


async def test_a_reduced_subscription_after_a_reconnection_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(listening_module, "_SHORTEST_PAUSE", 0.01)
    streams: list[Heard] = []

    async def play(heard: Heard) -> None:
        if heard.name == "server/discover":
            await heard.result(discovered(checked.STATELESS))
            return
        streams.append(heard)
        await heard.event(acknowledged(heard.id, **({"toolsListChanged": True} if len(streams) == 1 else {})))
        if len(streams) > 1:
            await heard.until_gone()

    async with serving(play) as script, runtime.connect(script.url, Customer) as client, client.subscribed(TOOLS):
        await checked.until(lambda: "the server agrees to another subscription than before" in caplog.text)


async def test_reconnection_pauses_grow_to_a_limit_until_a_stream_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test controls the client's clock."""
    shop, pauses, moment = Shop(), list[float](), 0.0

    class Time:
        async def sleep(self, seconds: float) -> None:
            pauses.append(seconds)
            await anyio.lowlevel.checkpoint()

        def current_time(self) -> float:
            return moment

        def __getattr__(self, name: str) -> Any:
            return getattr(anyio, name)

    async with in_memory(shop) as client:
        monkeypatch.setattr(listening_module, "anyio", Time())
        request = client.link.request

        async def away(*arguments: Any, **more: Any) -> Any:
            if 0 < len(pauses) < 40:
                raise runtime.AuthorizationError("the issuer is away", is_temporary=True)
            return await request(*arguments, **more)

        monkeypatch.setattr(client.link, "request", away)
        async with client.subscribed(TOOLS):
            for losses in (40, 41, 42):
                moment += 2 if losses == 42 else 0
                end_all(shop)
                await checked.until(lambda losses=losses: len(pauses) == losses)  # type: ignore[misc]
                await checked.until(lambda: any(isinstance(one, Subscription) and one.ready for one in shop.audience))
                await anyio.wait_all_tasks_blocked()  # until the client has read the new acknowledgement
    assert 0.125 <= pauses[0] <= 0.25
    assert all(15 <= pause <= 30 for pause in pauses[10:41]), "the stream of the last one has not lasted"
    assert len(set(pauses)) > 30
    assert 0.125 <= pauses[41] <= 0.25


async def test_a_temporary_authorization_error_does_not_end_a_subscription(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening_module, "_SHORTEST_PAUSE", 0.01)
    shop = Shop()
    async with in_memory(shop) as client:
        request, failures = client.link.request, [True, True, False]

        async def unauthorized(*arguments: Any, **more: Any) -> Any:
            if failures and len(client.heard) == 1:
                raise runtime.AuthorizationError("the issuer is away", is_temporary=failures.pop(0))
            return await request(*arguments, **more)

        monkeypatch.setattr(client.link, "request", unauthorized)

        with pytest.raises(runtime.AuthorizationError):  # noqa: PT012 - the block must be entered, and end by itself
            async with client.subscribed(TOOLS):
                end_all(shop)
                await anyio.sleep(5)
        assert failures == []
