"""A client over a bridge, where servers are odd or forgetful: nothing leaks, and nothing fails without a type."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import anyio
import pytest

from mcp_bindgen.host.result_cache import ResultCache
from mcp_bindgen.runtime import AuthorizationError, ProtocolError, Request, RequestTimeout, handles, serve
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.errors import SessionLost
from mcp_bindgen.runtime.protocol.transport import Lost
from mcp_bindgen.runtime.transports.memory import pair
from tests.runtime.endpoint.test_bridged_clients import URI, bridged, make_client, make_server
from tests.support.checked_connections import (
    INITIALIZED,
    STATELESS,
    Raw,
    Recording,
    answer,
    bindings,
    notification,
    request,
    running,
    until,
)

OLD, NEW = "2024-11-05", "2025-11-25"
ECHO: Any = Request("acme/echo", sender="both", params=dict[str, Any], result=dict[str, Any])


def filter_of(**wanted: Any) -> Any:
    return bindings(STATELESS).types.SubscriptionFilter(**wanted)


async def welcome(raw: Raw, revision: str, capabilities: Any = None, **info: Any) -> None:
    """Answer a handshake, or a probe and a handshake, in one revision."""
    asked = await raw.receive()
    if asked["method"] == "server/discover":
        error = {"code": -32601, "message": "no"}
        await raw.send({"jsonrpc": "2.0", "id": asked["id"], "error": error})
        asked = await raw.receive()
    told = {"name": "raw", "version": "0", **info}
    result = {"protocolVersion": revision, "capabilities": capabilities or {}, "serverInfo": told}
    await raw.send(answer(asked["id"], result))


@pytest.mark.full
async def test_connections_and_calls_leave_nothing_behind() -> None:
    class Echo(bindings(NEW).Server):  # type: ignore[misc]
        @handles(ECHO)
        async def answer(self, params: Any, ctx: Any) -> Any:
            return params

    carriers: list[Any] = []
    for home, wire in ((NEW, STATELESS), (STATELESS, NEW)):
        async with bridged(home, wire) as (client, _, _):
            await client.call_tool("hi")
            carriers.append(weakref.ref(type(client._bridge.wire_client)))
        del client
    readers = []
    for _ in range(3):
        left, right = pair()
        own = make_client(STATELESS)
        async with running(serve(right, Echo(), revisions=[NEW])), own.connected(left):
            for said in ({"_meta": None}, {"_meta": 5}, {"_meta": {"a": 1}, "b": 2}):
                assert (await own.request(ECHO, said)).get("b") == said.get("b")
        readers.append(jsonrpc.answer_reader.cache_info().currsize)
    gc.collect()
    assert [ref() for ref in carriers] == [None, None]
    assert readers[0] == readers[-1]


async def test_what_an_old_server_says_of_itself_and_of_progress_may_clash() -> None:
    left, right = pair()
    client, raw = make_client(NEW), Raw(right)

    async def old() -> None:
        await welcome(raw, OLD, {"tools": {}}, title=5, icons="none")
        assert await raw.receive() == INITIALIZED
        asked = await raw.receive()
        token = asked["params"]["_meta"]["progressToken"]
        told = {"progressToken": token, "progress": 1, "message": 5}
        await raw.send(notification("notifications/progress", told), answer(asked["id"], {"content": []}))

    progress: list[Any] = []
    async with running(old()), client.connected(left):
        assert (client.server_info.name, client.server_info.title) == ("raw", None)
        await client.with_options(on_progress=progress.append).call_tool("x")
    await raw.close()
    assert [(one.progress, one.message) for one in progress] == [(1, None)]


async def test_a_server_may_speak_as_soon_as_the_handshake_ends() -> None:
    left, right = pair()
    client, raw = make_client(STATELESS), Raw(right)
    answers: list[Any] = []

    async def hasty() -> None:
        asked = await raw.receive()
        await raw.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}})
        asked = await raw.receive()
        info = {"name": "raw", "version": "0"}
        result = {"protocolVersion": NEW, "capabilities": {}, "serverInfo": info}
        await raw.send(answer(asked["id"], result), request("r", "roots/list"))
        answers.extend([await raw.receive(), await raw.receive()])

    async with running(hasty()), client.connected(left):
        await until(lambda: len(answers) == 2)
    await raw.close()
    assert INITIALIZED in answers
    assert [one["result"]["roots"] for one in answers if "id" in one] == [[{"uri": "file:///home"}]]


async def test_a_ping_asks_the_server_whatever_the_cache_knows_and_in_time() -> None:
    class Lasting(type(make_server(STATELESS))):  # type: ignore[misc]
        slow = False

        async def discover(self, params: Any, ctx: Any) -> Any:
            await anyio.sleep(30 if self.slow else 0)
            types = bindings(STATELESS).types
            return types.DiscoverResult(
                supported_versions=[STATELESS],
                capabilities=types.ServerCapabilities(),
                ttl_ms=60_000,
                cache_scope="public",
            )

    left, right = pair()
    client, server = make_client(NEW), Lasting()
    client.cache = ResultCache()
    ours = Recording(left, STATELESS)
    async with running(serve(right, server, revisions=[STATELESS])), client.connected(ours):
        before = ours.methods().count("server/discover")
        await client.ping()
        await client.ping()
        assert ours.methods().count("server/discover") == before + 2
        server.slow = True
        with pytest.raises(RequestTimeout):
            await client.with_options(timeout=0.05).ping()


async def test_a_notification_that_the_server_has_no_words_for_is_not_sent() -> None:
    async with bridged(NEW, STATELESS) as (client, _, ours):
        methods = bindings(NEW).methods.METHODS
        for name, params in (("notifications/cancelled", {}), ("notifications/roots/list_changed", None)):
            method = methods[name]
            await client.notify(method, None if params is None else jsonrpc.typed_params(method, params))
        await client.ping()
        assert not [name for name in ours.methods() if name.startswith("notifications/")]


async def test_those_who_follow_one_resource_share_one_subscription() -> None:
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
        assert [name for name in ours.methods() if "subscribe" in name] == [
            "resources/subscribe",
            "resources/unsubscribe",
        ]


async def test_a_resource_that_cannot_be_followed_is_left_out_of_what_is_agreed() -> None:
    async with bridged(STATELESS, NEW) as (client, server, _):
        follow = type(server).subscribe

        async def picky(self: Any, params: Any, ctx: Any) -> Any:
            if params.uri != URI:
                raise ProtocolError(-32002, "no such resource")
            return await follow(self, params, ctx)

        type(server).subscribe = picky
        async with client.subscribed(filter_of(resource_subscriptions=["file:///none", URI])) as agreed:
            assert agreed.resource_subscriptions == [URI]


async def test_what_a_server_forgets_with_a_session_is_said_again() -> None:
    left, right = pair()
    client, raw = make_client(STATELESS), Raw(right)
    said: list[Any] = []
    capabilities = {"tools": {}, "logging": {}, "resources": {"subscribe": True}}

    async def forgetful() -> None:
        await welcome(raw, NEW, capabilities)
        while said.count("tools/call") < 3:
            asked = await raw.receive()
            said.append(asked["method"])
            if asked["method"] == "tools/call" and said.count("tools/call") == 1:
                lost: Any = Lost(asked["id"], SessionLost("forgotten"))
                await right.send([lost])
                await welcome(raw, NEW, capabilities)
            elif "id" in asked:
                await raw.send(answer(asked["id"], {"content": []} if asked["method"] == "tools/call" else {}))

    level = {bindings(STATELESS).REVISION.meta_keys["log_level"]: "error"}
    async with running(forgetful()), client.connected(left):
        async with client.subscribed(filter_of(resource_subscriptions=[URI])):
            await client.call_tool("x", meta=level)
        await client.call_tool("x", meta=level)
    await raw.close()
    assert [one for one in said if not one.startswith("notifications/")] == [
        "resources/subscribe",
        "logging/setLevel",
        "tools/call",
        "logging/setLevel",
        "resources/subscribe",
        "tools/call",
        "resources/unsubscribe",
        "tools/call",
    ]


async def test_a_client_that_may_not_listen_goes_on() -> None:
    left, right = pair()
    client, raw = make_client(NEW), Raw(right)
    refused = anyio.Event()
    declared = {"tools": {"listChanged": True}}

    async def strict() -> None:
        while True:
            asked = await raw.receive()
            if asked["method"] == "subscriptions/listen":
                lost: Any = Lost(asked["id"], AuthorizationError("not you"))
                await right.send([lost])
                refused.set()
            elif asked["method"] == "initialize":
                await raw.send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}})
            elif asked["method"] == "server/discover":
                more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
                told = {"supportedVersions": [STATELESS], "capabilities": declared, **more}
                await raw.send(answer(asked["id"], told))
            else:
                await raw.send(answer(asked["id"], {"resultType": "complete", "content": []}))
                return

    async with running(strict()), client.connected(left):
        await refused.wait()
        assert (await client.call_tool("x")).content == []
    await raw.close()
