"""Subscription streams: notifications that clients receive, notifications that are filtered out, and the end."""

from __future__ import annotations

import json
from contextlib import ExitStack, suppress
from typing import Any
from unittest.mock import Mock

import anyio
import pytest

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.cluster.worker import Recorder
from mcp_bindgen.runtime import CapabilityMissing, ConnectionClosed, serve
from mcp_bindgen.runtime.protocol import uris
from mcp_bindgen.runtime.protocol.request_scope import Negotiated, is_wanted
from mcp_bindgen.runtime.session.endpoint import Endpoint
from mcp_bindgen.runtime.session.subscriptions import Subscription
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.v2026_07_28 import types as mcp
from tests.harness import checked_connections as checked
from tests.harness.checked_connections import refused
from tests.harness.effort import each
from tests.harness.meta_keys import SERVER_INFO, SUBSCRIPTION

LATEST = "2025-11-25"
EVERYTHING = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
TOOLS, PROMPTS, RESOURCES = (f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources"))
UPDATED = "notifications/resources/updated"


class Changes(v2026_07_28.Server):
    """Server with changing tools and resources."""

    async def list_tools(self, params: Any, ctx: v2026_07_28.Context) -> mcp.ListToolsResult:
        return mcp.ListToolsResult(tools=[])

    async def list_resources(self, params: Any, ctx: v2026_07_28.Context) -> mcp.ListResourcesResult:
        return mcp.ListResourcesResult(resources=[])

    async def call_tool(self, params: mcp.CallToolRequestParams, ctx: v2026_07_28.Context) -> mcp.CallToolResult:
        match params.name:
            case "change":
                await self.broadcast(lambda client: client.notify_tool_list_changed())
            case "aside":
                await ctx.notify_tool_list_changed()
            case name:
                await self.broadcast(lambda client: client.notify_resource_updated(name))
        return mcp.CallToolResult(content=[])

    async def tell(self) -> None:
        """Send each kind of change notification."""
        await self.broadcast(lambda client: client.notify_tool_list_changed())
        with suppress(CapabilityMissing):  # only some of these servers have prompts
            for client in self.connections:
                await client.notify(v2026_07_28.methods.PROMPT_LIST_CHANGED, mcp.NotificationParams())
        await self.broadcast(lambda client: client.notify_resource_list_changed())
        await self.update("x:y")

    async def update(self, uri: str) -> None:
        """Notify clients that a resource has changed."""
        await self.broadcast(lambda client: client.notify_resource_updated(uri))


class Prompts(Changes):
    """Server that also has prompts."""

    async def list_prompts(self, params: Any, ctx: v2026_07_28.Context) -> mcp.ListPromptsResult:
        return mcp.ListPromptsResult(prompts=[])


class Before(v2025_11_25.Server):
    """Stateful server with changing tools."""

    async def list_tools(self, params: Any, ctx: v2025_11_25.Context) -> v2025_11_25.types.ListToolsResult:
        return v2025_11_25.types.ListToolsResult(tools=[])


def listen(id_: object, **wanted: object) -> dict[str, Any]:
    """Return a request for a subscription."""
    return checked.lone(id_, "subscriptions/listen", notifications=wanted)


async def listening(client: checked.Raw, id_: object, **wanted: object) -> Any:
    """Subscribe; return the acknowledged filter."""
    told = await client.ask(listen(id_, **wanted))
    assert (told["method"], told["params"]["_meta"]) == (ACKNOWLEDGED, {SUBSCRIPTION: id_})
    return told["params"]["notifications"]


def heard(recording: checked.Recording, id_: object) -> list[str]:
    """Return the methods of the notifications of a subscription after its acknowledgement."""
    mine = [
        message
        for message in recording.sent
        if "method" in message and message["params"].get("_meta", {}).get(SUBSCRIPTION) == id_
    ]
    assert mine[0]["method"] == ACKNOWLEDGED
    return [message["method"] for message in mine[1:]]


@each("id_", [1, 0, "1", "", "é", -5, 10**20])
async def test_notifications_follow_the_acknowledgement_and_have_the_subscription_id(id_: Any) -> None:
    server = Prompts()
    async with checked.played(server) as (client, recording):
        agreed = await listening(client, id_, **EVERYTHING, resourceSubscriptions=["x:y"])
        assert agreed == {**EVERYTHING, "resourceSubscriptions": ["x:y"]}
        await server.tell()
        await checked.until(lambda: len(recording.sent) == 5)
        assert heard(recording, id_) == [TOOLS, PROMPTS, RESOURCES, UPDATED]


@each(
    ("wanted", "agreed", "expected"),
    [
        ({}, {}, []),
        ({"toolsListChanged": False}, {}, []),
        ({"toolsListChanged": True}, {"toolsListChanged": True}, [TOOLS]),
        ({"promptsListChanged": True}, {}, []),
        (EVERYTHING, {"toolsListChanged": True, "resourcesListChanged": True}, [TOOLS, RESOURCES]),
        ({"resourceSubscriptions": []}, {}, []),
        ({"resourceSubscriptions": ["x:y", "x:y"]}, {"resourceSubscriptions": ["x:y", "x:y"]}, [UPDATED]),
        ({"resourceSubscriptions": ["x:z"]}, {"resourceSubscriptions": ["x:z"]}, []),
        ({"toolsListChanged": True, "novel": True}, {"toolsListChanged": True}, [TOOLS]),
    ],
)
async def test_a_subscription_gets_only_requested_and_offered_notifications(
    wanted: dict[str, Any], agreed: dict[str, Any], expected: list[str]
) -> None:
    server = Changes()
    async with checked.played(server) as (client, recording):
        assert await listening(client, 1, **wanted) == agreed
        for _ in range(2):
            await server.tell()
        await client.ask(checked.lone(2, "tools/list"))
        assert heard(recording, 1) == expected * 2


@pytest.mark.parametrize("wanted", [5, None, [], {"toolsListChanged": 1}, {"resourceSubscriptions": "x:y"}])
async def test_invalid_subscription_filters_are_refused(wanted: object) -> None:
    async with checked.played(Changes()) as (client, _):
        assert (await client.ask(checked.lone(1, "subscriptions/listen", notifications=wanted)))["error"][
            "code"
        ] == -32602
        assert (await client.ask(checked.lone(2, "subscriptions/listen")))["error"]["code"] == -32602


FOLLOWED = {
    "file:///a": ("file:///a file:///a/b FILE:///%61", "file:///ab file:///A"),
    "file:///a/": ("file:///a/b/c", ""),
    "file:///a/b": ("", "file:///a"),
    "FILE:///x/../%61/": ("file:///a/b", ""),
    "test://a?b": ("", "test://a"),
    "x:y": ("x:y/", ""),
}
"""Subscribed URI -> URIs with notified updates, and URIs with updates that are not notified."""


@pytest.mark.parametrize("followed", FOLLOWED)
async def test_a_resource_subscription_includes_nested_uris(followed: str) -> None:
    told, untold = (uris.split() for uris in FOLLOWED[followed])
    server = Changes()
    async with checked.played(server) as (client, recording):
        await listening(client, 1, resourceSubscriptions=["other:x", followed])
        for changed in (*told, *untold):
            await server.update(changed)
        await client.ask(checked.lone(2, "tools/list"))
        assert [params["uri"] for params in recording.params(UPDATED)] == told


async def test_one_connection_may_have_several_subscriptions() -> None:
    server = Prompts()
    async with checked.played(server) as (client, recording):
        await listening(client, 1, toolsListChanged=True)
        await listening(client, "1", promptsListChanged=True)
        await listening(client, 2, **EVERYTHING)
        assert (await client.ask(listen(2, toolsListChanged=True)))["error"]["code"] == -32600
        await server.tell()
        await checked.until(lambda: len(recording.sent) == 9)
        assert (heard(recording, 1), heard(recording, "1")) == ([TOOLS], [PROMPTS])
        assert heard(recording, 2) == [TOOLS, PROMPTS, RESOURCES]
        await client.send(checked.notification("notifications/cancelled", {"requestId": 2}))
        await checked.until(lambda: len(server.audience) == 3)
        await server.tell()
        await client.ask(checked.lone(9, "tools/list"))
        assert (heard(recording, 1), len(heard(recording, 2))) == ([TOOLS] * 2, 3)


async def test_a_cancelled_subscription_gets_no_notification_and_no_response() -> None:
    server = Changes()
    async with checked.played(server) as (client, recording):
        for turn in range(3):
            await listening(client, "s", toolsListChanged=True)
            await client.send(checked.notification("notifications/cancelled", {"requestId": "s"}))
            await checked.until(lambda: not server.connections)
            await server.update(f"x:{turn}")
        await client.ask(checked.lone(1, "tools/list"))
        assert recording.methods() == [ACKNOWLEDGED] * 3
        assert [message["id"] for message in recording.sent if "id" in message] == [1]


async def test_a_server_ends_a_subscription_with_a_result() -> None:
    server = Changes()
    async with checked.played(server) as (client, _):
        await listening(client, 7, toolsListChanged=True)
        await server.broadcast(lambda one: one.notify_tool_list_changed())
        for link in server.audience:
            if isinstance(link, Subscription):
                link.leave()
        assert (await client.receive())["method"] == TOOLS
        ended = await client.receive()
        assert (ended["id"], ended["result"]["resultType"]) == (7, "complete")
        assert ended["result"]["_meta"][SUBSCRIPTION] == 7
        assert SERVER_INFO in ended["result"]["_meta"]
        assert not server.connections


@pytest.mark.full
async def test_a_disconnected_client_has_no_remaining_subscription() -> None:
    server = Changes()
    for _ in range(3):
        async with checked.played(server) as (client, _):
            await listening(client, 1, toolsListChanged=True)
            assert len(server.connections) == 1
        assert server.audience == []


async def test_a_client_without_a_subscription_gets_no_notification() -> None:
    server = Changes()
    async with checked.played(server) as (client, recording):
        await client.ask(checked.lone(1, "tools/list"))
        assert server.connections == []
        await server.broadcast(lambda one: one.notify_tool_list_changed())
        await client.ask(checked.lone(2, "tools/call", name="change"))
        assert recording.methods() == []


async def test_a_change_notification_on_the_stream_of_a_request_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    async with checked.played(Changes()) as (client, recording):
        await listening(client, 1, toolsListChanged=True)
        assert (await client.ask(checked.lone(2, "tools/call", name="aside")))["error"]["code"] == -32603
        assert "Server.broadcast" in caplog.text
        assert recording.methods() == [ACKNOWLEDGED]


async def test_a_subscription_is_notified_of_changes_by_requests() -> None:
    async with checked.played(Changes()) as (client, recording):
        await listening(client, "s", toolsListChanged=True, resourceSubscriptions=["x:y"])
        await client.send(checked.lone(2, "tools/call", name="change"), checked.lone(3, "tools/call", name="x:y"))
        await checked.until(lambda: len(recording.sent) == 5)
        assert heard(recording, "s") == [TOOLS, UPDATED]


async def test_a_change_is_sent_to_stateful_and_stateless_clients() -> None:
    now, before = Changes(), Before()
    async with checked.played(now, before) as (modern, theirs), checked.played(before, now) as (old, those):
        await listening(modern, 1, toolsListChanged=True)
        await listening(old, "both", toolsListChanged=True)
        await now.broadcast(lambda client: client.notify_tool_list_changed())
        await before.broadcast(lambda client: client.notify_tool_list_changed())  # no client has initialized yet
        await old.ask(checked.initialize(LATEST))
        await old.send(checked.INITIALIZED)
        await checked.until(lambda: len(before.connections) == 1)
        assert len(now.connections) == 2
        for server in (now, before):
            await server.broadcast(lambda client: client.notify_tool_list_changed())
        await modern.ask(checked.lone(5, "tools/list"))
        await old.ask(checked.request(5, "tools/list"))
        assert (heard(theirs, 1), heard(those, "both")) == ([TOOLS] * 2, [TOOLS] * 2)
        told = [message.get("params", {}) for message in those.sent if message.get("method") == TOOLS]
        assert len([params for params in told if "_meta" not in params]) == 1


async def test_subscriptions_carry_only_change_notifications() -> None:
    server = Changes()
    async with checked.played(server) as (client, recording):
        message = listen(1, toolsListChanged=True)
        message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "debug"
        message["params"]["_meta"]["progressToken"] = "t"
        await client.ask(message)
        (context,) = server.connections
        await context.log("error", "x")
        await context.progress(1)
        await context.notify_logging_message("error", "x")  # type: ignore[attr-defined]
        with pytest.raises(Exception, match="elicitation"):
            await context.elicit(mcp.ElicitRequestURLParams(message="", url="x:y"))  # type: ignore[attr-defined]
        await client.ask(checked.lone(2, "tools/list"))
        assert recording.methods() == [ACKNOWLEDGED]


# --- slow readers ---------------------------------------------------------------------------------------------


@pytest.mark.full
async def test_a_slow_reader_delays_no_other_client_and_loses_its_subscription() -> None:
    server = Changes()
    left, right = pair()
    stuck = checked.Raw(left)

    async def read() -> None:
        while True:
            await client.receive()

    serving = checked.running(serve(right, server))
    async with checked.played(server) as (client, recording), serving, anyio.create_task_group() as tasks:
        await listening(stuck, 1, toolsListChanged=True)
        await listening(client, 1, toolsListChanged=True)
        tasks.start_soon(read)
        with anyio.fail_after(10):
            for _ in range(900):  # more than a transport buffers, less than a subscription buffers
                await server.broadcast(lambda one: one.notify_tool_list_changed())
        await checked.until(lambda: len(recording.sent) == 901)
        assert len(server.connections) == 2
        with anyio.fail_after(10):
            for count in range(1000, 1900, 100):
                for _ in range(100):
                    await server.broadcast(lambda one: one.notify_tool_list_changed())
                await checked.until(lambda count=count: len(recording.sent) > count)  # type: ignore[misc]
        assert len(server.connections) == 1
        assert {message["method"] for message in [await stuck.receive() for _ in range(60)]} == {TOOLS}
        tasks.cancel_scope.cancel()
        await stuck.close()


async def test_no_change_is_lost_before_or_after_the_acknowledgement(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Changes()
    left, right = pair()
    client, recording, send = checked.Raw(left), checked.Recording(right, checked.STATELESS), right.send
    told = 0

    async def send_slowly(messages: Any) -> None:
        await anyio.sleep(0.01)
        await send(messages)
        await anyio.sleep(0.01)

    monkeypatch.setattr(right, "send", send_slowly)
    async with checked.running(serve(recording, server)):
        await client.send(listen(1, toolsListChanged=True))
        await checked.until(lambda: server.connections)
        while len(recording.sent) < 3:
            told += 1
            await server.broadcast(lambda one: one.notify_tool_list_changed())
            await anyio.sleep(0.001)
        await checked.until(lambda: len(recording.sent) == told + 1)
        assert heard(recording, 1) == [TOOLS] * told
        await left.close()
    recording.check()


async def test_an_aborted_subscription_ends_with_an_error() -> None:
    server = Changes()
    async with checked.played(server) as (client, _):
        await listening(client, 1, toolsListChanged=True)
        (context,) = server.connections
        method = v2026_07_28.methods.TOOL_LIST_CHANGED
        for _ in range(1000):
            await context.link.notify(method, mcp.NotificationParams())
        await refused(context.link.notify(method, mcp.NotificationParams()), ConnectionClosed, "does not read")
        count = 0
        while "error" not in (message := await client.receive()):
            count += 1
        assert message["id"] == 1
        assert count <= 1000
        assert json.dumps(message["error"])


def test_an_update_is_looked_up_and_not_compared_with_each_uri(monkeypatch: pytest.MonkeyPatch) -> None:
    method: Any = v2026_07_28.methods.METHODS[UPDATED]
    followed = ([f"note://n{n}/{i}" for i in range(1000)] for n in range(150))
    indexes = [method.filter.index(mcp.SubscriptionFilter(resource_subscriptions=one)) for one in followed]
    counted = Mock(wraps=uris.canonical)
    monkeypatch.setattr(uris, "canonical", counted)
    params = method.params(uri="note://n3/5/below")
    assert [n for n, index in enumerate(indexes) if method.filter.asks_for(index, params)] == [3]
    agreed = Negotiated(v2025_11_25.dispatcher.SERVER)
    link = Recorder(agreed)
    agreed.subscriptions = set(indexes[3])
    params = v2025_11_25.methods.METHODS[UPDATED].params(uri=params.uri)
    assert is_wanted(link, agreed, v2025_11_25.methods.METHODS[UPDATED], params)
    assert counted.call_count <= 2


async def test_other_tasks_run_while_many_clients_are_notified() -> None:
    server, turns = Changes(), 0
    endpoint = Endpoint([server])
    ready = type("Connected", (Recorder,), {"ready": True})
    links = [ready(Negotiated(v2026_07_28.dispatcher.SERVER)) for _ in range(2_000)]
    for link in links:
        link.negotiated.declared["server"] = {"tools": {"listChanged": True}}

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.sleep(0)

    with ExitStack() as stack:
        for link in links:
            stack.enter_context(endpoint.joined(link))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(others)
            await server.broadcast(lambda client: client.notify_tool_list_changed())
            tasks.cancel_scope.cancel()
    assert {len(link.told) for link in links} == {1}
    assert turns > 10
