"""Negotiation of a vendor's extension: only extensions that both sides declare are used (4 s)."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar

import pytest

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.cluster.worker import recorded
from mcp_bindgen.host.result_cache import ResultCache
from mcp_bindgen.http.headers import HeaderMirror
from mcp_bindgen.http.server.access import HttpEndpoint, operations
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.runtime import CapabilityMissing, ProtocolError, UnexpectedAnswer, connect, serve
from mcp_bindgen.runtime.protocol.access import Operation
from mcp_bindgen.runtime.protocol.events import Requested
from mcp_bindgen.runtime.session.endpoint import Endpoint
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.runtime.transports.stdio import stdio
from mcp_bindgen.v2026_07_28 import types as mcp
from tests.harness.checked_connections import Raw, answer, lone, notification, refused, request, running, stating, until
from tests.harness.shop import Customer, Shop, bindings, types
from tests.harness.stock_schema import ID
from tests.http.server import test_app as http
from tests.runtime.test_connecting import listening

DECLARED: dict[str, Any] = {"extensions": {ID: {}}}
LACKING: dict[str, Any] = {"requiredCapabilities": {"extensions": {ID: {}}}}
MISSING = -32021
Way = Callable[[Any], AbstractAsyncContextManager[Any]]


@asynccontextmanager
async def in_memory(client: Any, *servers: Any, served: Any = None, **options: Any) -> AsyncGenerator[Any]:
    left, right = pair()
    serving = serve(right, *(servers or (Shop(),)), revisions=served)
    async with running(serving), connect(left, client, **options) as found:
        yield found


@asynccontextmanager
async def over_http(client: Any) -> AsyncGenerator[Any]:
    app = HttpApp(Shop())
    async with app.lifespan(), listening(app) as (url, _), connect(f"{url}/mcp", client) as found:
        yield found


@asynccontextmanager
async def over_stdio(client: Any) -> AsyncGenerator[Any]:
    code = f"import sys; sys.path[:0] = {sys.path!r}; from tests.harness.shop import Shop, run; run(Shop())"
    async with stdio(sys.executable, "-c", code) as transport, connect(transport, client) as found:
        yield found


@asynccontextmanager
async def played(*servers: Any, revisions: Any = None) -> AsyncGenerator[Raw]:
    left, right = pair()
    async with running(serve(right, *(servers or (Shop(),)), revisions=revisions)):
        yield Raw(left)
        await left.close()


@pytest.fixture
def raw() -> AbstractAsyncContextManager[Raw]:
    return played()


# --- both sides declare the extension -------------------------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("way", [in_memory, over_http, over_stdio])
async def test_requests_results_notifications_and_filters_of_an_extension_work(way: Way) -> None:
    async with way(Customer()) as client:
        assert (client.extension(bindings.EXTENSION), (await client.get_stock("pear")).count) == ({}, 4)
        reserved = await client.request(
            bindings.methods.CALL_TOOL,
            mcp.CallToolRequestParams(name="reserve", meta=client.metadata(mcp.RequestMetaObject, None)),
        )
        assert isinstance(reserved, types.ReservedResult)
        assert reserved.by == "shop"
        await client.notify_stock_read("fig")
        async with client.subscribed(types.StockSubscription(stock_items=["apple"])) as agreed:
            assert agreed.stock_items == ["apple"]
            assert (await client.call_tool("sell")).content[0].text == "['fig']"
            await client.changed.wait()
    assert client.heard == ["apple"]  # filters match whole items, not parts of names


async def test_a_subscription_combines_core_and_extension_filters() -> None:
    async with in_memory(Customer()) as client:
        both = types.StockSubscription(stock_items=["pear"])
        async with client.subscribed(mcp.SubscriptionFilter(tools_list_changed=True), both) as agreed:
            assert isinstance(agreed, mcp.SubscriptionFilter)
            assert agreed.tools_list_changed
            assert agreed.model_dump() == {"toolsListChanged": True, "stockItems": ["pear"]}


async def test_settings_are_typed() -> None:
    shop = Shop()
    async with in_memory(Customer(), shop) as client:
        await refused(client.call_tool("reserve"), UnexpectedAnswer)
    assert shop.settings == [types.StockSettings(currency="EUR")]
    async with played() as raw:
        odd = {"extensions": {ID: {"currency": "gold"}}}
        error = (await raw.ask(lone(1, "tools/call", odd, name="reserve")))["error"]
    assert error["code"] == -32602
    assert "the settings of com.example/stock are not valid: currency" in error["message"]


def test_settings_of_an_unknown_extension_fail_at_class_definition() -> None:
    with pytest.raises(TypeError, match=r"Odd.extension_settings: 'com.example/other' is no extension of its bases"):

        class Odd(bindings.Client):  # type: ignore[misc]
            extension_settings: ClassVar[Any] = {"com.example/other": {}}


async def test_both_sides_declare_the_extensions_of_their_bases(raw: Raw) -> None:
    offered = (await raw.ask(lone(1, "server/discover")))["result"]["capabilities"]
    assert offered == {"tools": {"listChanged": True}, "logging": {}, "extensions": {ID: {}}}
    left, right = pair()
    raw = Raw(right)
    async with running(_ends(Customer().connected(left, timeout=1, exactly=True))):
        asked = await raw.receive()
        await raw.close()
    told = asked["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert told == {"extensions": {ID: {"currency": "EUR"}}}


async def _ends(connecting: Any) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - nobody answers
        async with connecting:
            pass


# --- only the server declares the extension -------------------------------------------------------------------


UNDECLARED: list[tuple[str, dict[str, Any]]] = [
    *(("tools/call", {"name": name}) for name in ("must", "careless", "wire")),
    *(("stock/get", {"item": "pear"}), ("subscriptions/listen", {"notifications": {"stockItems": ["pear"]}})),
]


@pytest.mark.parametrize(("method", "params"), UNDECLARED)
@pytest.mark.parametrize("capabilities", [{}, {"extensions": {"com.example/other": {}}}])
async def test_a_request_without_the_extension_gets_a_missing_capability_error(
    raw: Raw, method: str, params: Any, capabilities: Any
) -> None:
    error = (await raw.ask(lone(1, method, capabilities, **params)))["error"]
    assert (error["code"], error["data"]) == (MISSING, LACKING)


async def test_a_server_still_serves_clients_without_the_extension() -> None:
    async with in_memory(v2026_07_28.Client()) as client:
        assert (await client.call_tool("reserve")).content[0].text == "come to the counter"
        async with client.subscribed(mcp.SubscriptionFilter(tools_list_changed=True)):
            assert (await client.call_tool("sell")).content[0].text == "[]"  # a broadcast leaves out this client


async def test_each_request_declares_its_own_extensions(raw: Raw) -> None:
    assert "result" in await raw.ask(lone(1, "stock/get", DECLARED, item="pear"))
    assert (await raw.ask(lone(2, "stock/get", {}, item="pear")))["error"]["code"] == MISSING


async def test_extension_params_are_validated_like_core_params(raw: Raw) -> None:
    for params in ({}, {"item": 1}):
        error = (await raw.ask(lone(1, "stock/get", DECLARED, **params)))["error"]
        assert (error["code"], error["data"][0]["path"]) == (-32602, "params.item")
    wrong = {"notifications": {"stockItems": [1]}}
    error = (await raw.ask(lone(2, "subscriptions/listen", DECLARED, **wrong)))["error"]
    assert (error["code"], error["data"][0]["path"]) == (-32602, "params.notifications.stockItems.0")
    bare = request(3, "stock/get", {"item": "pear"})
    assert (await raw.ask(bare))["error"]["code"] == -32602  # no `_meta`


# --- only the client declares the extension -------------------------------------------------------------------


async def _greeted(raw: Raw, capabilities: Any) -> None:
    asked = await raw.receive()
    result = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "resultType": "complete"}
    await raw.send(answer(asked["id"], {**result, "ttlMs": 0, "cacheScope": "private"}))


@asynccontextmanager
async def at(client: Any, capabilities: Any) -> AsyncGenerator[Raw]:
    """Connect a client to a scripted server that declares these capabilities."""
    left, right = pair()
    raw = Raw(right)
    async with running(_greeted(raw, {"tools": {}, **capabilities})), client.connected(left):
        yield raw
    await raw.close()


async def test_a_client_sends_no_extension_message_to_a_server_without_the_extension() -> None:
    client = Customer()
    async with at(client, {}) as raw:
        assert client.extension(bindings.EXTENSION) is None
        for refused in (client.get_stock("pear"), client.notify_stock_read("pear")):
            with pytest.raises(
                CapabilityMissing, match=r"needs the extension 'com.example/stock', which the server did"
            ):
                await refused
        with pytest.raises(CapabilityMissing):
            client.subscribed(types.StockSubscription(stock_items=["pear"]))
        async with running(_answered(raw, "tools/list", {"tools": [], "ttlMs": 0, "cacheScope": "private"})):
            await client.list_tools()  # proves that the client sent nothing before


async def _answered(raw: Raw, method: str, result: Any, kind: str | None = "complete") -> None:
    asked = await raw.receive()
    assert asked["method"] == method
    await raw.send(answer(asked["id"], {**({"resultType": kind} if kind else {}), **result}))


@pytest.mark.parametrize("capabilities", [{}, {"extensions": {ID: {}}}])
async def test_an_extension_result_is_accepted_only_from_a_server_that_declares_it(capabilities: Any) -> None:
    client = Customer()
    async with at(client, capabilities) as raw, running(_answered(raw, "tools/call", {"resultType": "reserved"})):
        if capabilities:
            error = await refused(client.call_tool("reserve"), UnexpectedAnswer)
            assert isinstance(error.answer, types.ReservedResult)
        else:
            await refused(client.call_tool("reserve"), match="resultType")


@pytest.mark.parametrize("kind", ["later", "task", ""])
async def test_a_result_of_an_unknown_type_is_invalid(kind: str) -> None:
    client, everything = Customer(), {"resultType": kind, "content": [], "inputRequests": {}}
    calls: dict[str, Any] = {"tools/call": client.call_tool, "stock/get": client.get_stock}
    for method, call in calls.items():
        async with at(client, DECLARED) as raw, running(_answered(raw, method, {**everything, "count": 1, "ttlMs": 0})):
            await refused(call("x"), match="result")


async def test_a_result_without_a_type_is_complete() -> None:
    client = Customer()
    async with at(client, DECLARED) as raw, running(_answered(raw, "tools/call", {"content": []}, kind=None)):
        assert (await client.call_tool("x")).content == []


@pytest.mark.parametrize("capabilities", [{}, DECLARED])
async def test_extension_notifications_are_handled_only_if_the_server_declares_them(capabilities: Any) -> None:
    client = Customer()
    async with at(client, capabilities) as raw:
        await raw.send(notification("notifications/stock", {"item": "pear", "count": 1}))
        async with running(_answered(raw, "tools/call", {"content": []})):
            await client.call_tool("x")
        assert client.heard == (["pear"] if capabilities else [])


# --- results --------------------------------------------------------------------------------------------------


async def test_a_result_of_another_type_with_input_requests_is_an_ordinary_result() -> None:
    """For both sides, a result with `inputRequests` but another `resultType` is an ordinary result."""
    settled: list[Any] = []

    class Settles(Customer):
        async def settle(self, method: Any, params: Any, answer: Any) -> Any:
            settled.append((method.name, params.name, answer.input_requests))
            return mcp.CallToolResult(content=[])

    async with in_memory(Settles()) as client:
        assert (await client.call_tool("reserve")).content == []
    assert settled == [("tools/call", "reserve", {"colour": {"method": "no question"}})]


async def test_a_result_of_an_extension_is_not_cached() -> None:
    """A result of an extension with a member `ttlMs` is not cached."""
    counted: list[str] = []

    class Counts(Shop):
        async def get_stock(self, params: Any, ctx: Any) -> Any:
            counted.append(params.item)
            return await super().get_stock(params, ctx)

        async def list_tools(self, params: Any, ctx: Any) -> Any:
            counted.append("tools")
            return mcp.ListToolsResult(tools=[], ttl_ms=60_000)

    async with in_memory(Customer(), Counts(), cache=ResultCache()) as client:
        for _ in range(2):
            await client.get_stock("pear")
            await client.list_tools()
    assert counted == ["pear", "tools", "pear"]


# --- over HTTP ------------------------------------------------------------------------------------------------


def stock_params(item: str) -> Any:
    return types.GetStockRequestParams.model_validate({"item": item, "_meta": stating(DECLARED)})


def test_the_target_of_an_extension_request_is_mirrored_in_its_name_header() -> None:
    params = stock_params("pear")
    assert HeaderMirror(v2026_07_28.REVISION).headers(bindings.methods.GET_STOCK, params)["Mcp-Name"] == "pear"
    assert operations(bindings.methods.GET_STOCK, params) == [("stock/get", "pear")]


@pytest.mark.parametrize(("name", "status"), [("pear", 200), (None, 400), ("fig", 400)])
async def test_the_name_header_must_match_the_body(name: str | None, status: int) -> None:
    app = HttpApp(Shop())
    async with app.lifespan():
        visit = http.begin(app, lone(1, "stock/get", DECLARED, item="pear"), {"mcp-name": name})
        await visit.task
    assert visit.status == status


async def test_required_scopes_apply_to_extension_methods() -> None:
    asked: list[Operation] = []

    class Guarded(Shop):
        def required_scopes(self, method: str, name: str | None) -> Any:
            asked.append((method, name))
            return ()

    class Open:
        metadata_path = None

        def needed(self, operation: Operation) -> frozenset[str]:
            return frozenset({"rare"}) if operation == ("stock/get", "fig") else frozenset()

    service = HttpEndpoint([Guarded()], access_policy=Open())  # type: ignore[arg-type]
    dispatcher = service.dispatchers["2026-07-28"]
    route = dispatcher.routes["stock/get"]
    pear, fig = (Requested(1, route, stock_params(item), dispatcher) for item in ("pear", "fig"))
    await service.admit(None, [pear])
    with pytest.raises(ProtocolError, match="Insufficient scope: this needs rare"):
        await service.admit(None, [fig])
    assert asked == [("stock/get", "pear"), ("stock/get", "fig")]


# --- over bridges ---------------------------------------------------------------------------------------------


async def test_clients_of_other_revisions_see_no_extension() -> None:
    """The extension belongs to another revision, so these clients cannot use it even if they declare its id."""
    async with played(revisions=["2025-11-25"]) as raw:
        assert "extensions" not in (await raw.introduce("2025-11-25", DECLARED))["result"]["capabilities"]
        assert (await raw.ask(request(1, "stock/get", {"item": "pear"})))["error"]["code"] == -32601
        result = (await raw.ask(request(2, "tools/call", {"name": "reserve"})))["result"]
        assert result["content"][0]["text"] == "come to the counter"
        assert (await raw.ask(request(3, "tools/call", {"name": "careless"})))["error"]["code"] == -32600
        assert "result" in await raw.ask(request(4, "tools/call", {"name": "sell"}))


async def test_servers_of_other_revisions_get_no_extension_requests() -> None:
    class Older(v2025_11_25.Server):
        info = v2025_11_25.types.Implementation(name="older", version="1")

        async def call_tool(self, params: Any, ctx: Any) -> Any:
            return v2025_11_25.types.CallToolResult(content=[])

        def extra_capabilities(self) -> Any:
            return DECLARED

    async with in_memory(Customer(), Older(), served=["2025-11-25"]) as client:
        assert client.wire_revision == "2025-11-25"
        assert (await client.call_tool("x")).content == []
        assert client.extension(bindings.EXTENSION) is None
        await refused(client.get_stock("pear"), CapabilityMissing)
        with pytest.raises(CapabilityMissing):
            client.subscribed(types.StockSubscription(stock_items=["pear"]))


# --- several processes ----------------------------------------------------------------------------------------


async def test_a_broadcast_to_all_processes_includes_extension_notifications() -> None:
    shop, told = Shop(), list[Any]()

    class Everybody:
        shared = object()

        async def publish(self, server: Any, tell: Any) -> bool:
            notes = await recorded(endpoint, server, tell)
            told.extend((revision, method.name, params.item) for revision, method, params in notes)
            return True

    endpoint = Endpoint([shop], workers=Everybody())  # type: ignore[arg-type]
    await shop.broadcast(lambda client: client.notify_stock_changed(item="pear", count=1))
    assert told == [("2026-07-28", "notifications/stock", "pear")]


async def test_an_extension_broadcast_without_subscribers_logs_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with in_memory(Customer()) as client:
        await client.call_tool("sell")
        await until(lambda: True)
    assert not caplog.records


# --- results of handlers --------------------------------------------------------------------------------------


LATER = mcp.CallToolResult(content=[], result_type="later")


@pytest.mark.parametrize("result", [types.ReservedResult(by="nobody"), {"resultType": "reserved"}, LATER])
async def test_an_extension_result_from_a_server_without_it_is_an_internal_error(result: Any, caplog: Any) -> None:
    class Plain(v2026_07_28.Server):
        info = mcp.Implementation(name="plain", version="1")

        async def call_tool(self, params: Any, ctx: Any) -> Any:
            return result

    async with played(Plain()) as raw:
        error = (await raw.ask(lone(1, "tools/call", DECLARED, name="x")))["error"]
    assert error["code"] == -32603
    assert f"returned a result of an unknown type: {'later' if result is LATER else 'reserved'!r}" in caplog.text
