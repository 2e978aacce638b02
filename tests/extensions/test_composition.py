"""Several extensions in one class, in both eras: their members, name conflicts, and engines (1 s)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import pytest

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.extension_abi import Extension, ExtensionRoutes
from mcp_bindgen.runtime import CapabilityMissing, MethodNotFound
from mcp_bindgen.runtime.abi import ExtensionResult, Filter, Model, Notification, RequestMethod, Route, by_name
from mcp_bindgen.runtime.transports.memory import pair
from tests.extensions.test_negotiation import in_memory, played
from tests.harness.checked_connections import Raw, answer, lone, notification, refused, request, running
from tests.harness.shop import Customer, Shop, bindings, types
from tests.harness.stock_schema import ID

PRICE = "com.example/price"


class PriceParams(Model):
    """Params with any `_meta`."""

    meta: dict[str, Any] | None = None
    item: str


class Price(Model):
    """Result of `price/get`."""

    result_type: Literal["complete"] = "complete"
    price: int


class Offered(ExtensionResult):
    """Alternative result of `tools/call`."""

    result_type: Literal["offered"] = "offered"


class PriceFilter(Model):
    """Member that the extension adds to subscription filters."""

    price_items: list[str] | None = None


def price(core: Any = v2026_07_28, id_: str = PRICE, name: str = "price/get", **facts: Any) -> tuple[Any, Any]:
    """Return server and client classes of an extension with one request and one notification."""
    get: RequestMethod[Any, Any] = RequestMethod(name, "client", PriceParams, Price, extension=id_)
    news: Notification[Any] = Notification(
        f"notifications/{name}", "server", PriceParams, extension=id_, filter=facts.pop("filter", None)
    )
    extension = Extension(id_, "1", core.REVISION, "nowhere", **facts)
    known = SimpleNamespace(Price=Price, Offered=Offered, PriceFilter=PriceFilter)
    vars(extension).update(_methods=by_name(get, news), types=known)

    class Context(core.Context):  # type: ignore[misc]
        async def notify_price(self, item: str) -> None:
            await self.notify(news, PriceParams(item=item))

    class PriceServer(core.Server):  # type: ignore[misc]
        adds = ExtensionRoutes(extension, "server", Route(get, "get_price"))
        context = Context

        def get_price(self, params: Any, ctx: Any) -> Any:
            raise MethodNotFound(get.name)

    class PriceClient(core.Client):  # type: ignore[misc]
        adds = ExtensionRoutes(extension, "client", Route(news, "on_price"))

        async def get_price(self, item: str) -> Any:
            return await self.call(get, PriceParams.model_validate({"item": item, "_meta": dict(self.link.meta)}))

        def on_price(self, params: Any, ctx: Any) -> Any:
            return None

    return PriceServer, PriceClient


# --- several extensions at once -------------------------------------------------------------------------------


async def test_a_class_supports_all_extensions_of_its_bases() -> None:
    server, client = price(extends={"SubscriptionFilter": "PriceFilter"}, filter=Filter("price_items", compares="item"))

    class Both(Shop, server):  # type: ignore[misc, valid-type]
        async def get_price(self, params: Any, ctx: Any) -> Any:
            assert isinstance(ctx, bindings.Context)
            return Price(price=7)

        async def call_tool(self, params: Any, ctx: Any) -> Any:
            if params.name != "prices":
                return await super().call_tool(params, ctx)
            await self.broadcast(lambda one: one.notify_price("pear"))
            return v2026_07_28.types.CallToolResult(content=[])

    class Wants(Customer, client):  # type: ignore[misc, valid-type]
        async def on_price(self, params: Any, ctx: Any) -> None:
            self.heard.append(f"the price of {params.item}")
            self.changed.set()

    assert [one.id for one in Both.extensions] == [one.id for one in Wants.extensions] == [ID, PRICE]
    assert issubclass(Both.context, bindings.Context)
    async with in_memory(Wants(), Both()) as found:
        assert ((await found.get_stock("pear")).count, (await found.get_price("pear")).price) == (4, 7)
        async with found.subscribed(types.StockSubscription(stock_items=["fig"]), PriceFilter(price_items=["pear"])):
            await found.call_tool("sell")
            await found.call_tool("prices")
            await found.changed.wait()
    assert found.heard == ["the price of pear"]


def test_methods_without_an_overridden_handler_are_not_offered() -> None:
    server, _ = price()
    stub, own = server(), type("Own", (server,), {"get_price": lambda self, params, ctx: Price(price=1)})()
    for target, names in ((stub, []), (own, ["price/get"])):
        assert target.dispatcher.extended(type(target)).offered(target) == names


@pytest.mark.parametrize(
    ("clash", "said"),
    [
        ({"name": "tools/call"}, "the method 'tools/call' is taken by MCP 2026-07-28 and by com.example/price"),
        ({"name": "stock/get"}, "the method 'stock/get' is taken by com.example/stock and by com.example/price"),
        ({"alternatives": {"tools/call": ("Price",)}}, "the resultType 'complete' of 'tools/call' is taken by MCP "),
        ({"core": v2025_11_25}, "com.example/price extends MCP 2025-11-25, not MCP 2026-07-28"),
    ],
)
def test_a_name_that_is_taken_twice_raises_an_error_with_both_owners(clash: Any, said: str) -> None:
    with pytest.raises(TypeError, match=rf"^\w+: {said}"):
        type("Both", (bindings.Server, type("Other", (), {"adds": vars(price(**clash)[0])["adds"]})), {})


def test_two_extensions_cannot_share_a_handler_or_a_field() -> None:
    one, _ = price(extends={"SubscriptionFilter": "PriceFilter"})
    two, _ = price(id_="com.example/other", name="other/get", extends={"SubscriptionFilter": "PriceFilter"})
    with pytest.raises(TypeError, match=r"^Both: the handler 'get_price' is taken by com.example/price and by com.exa"):
        type("Both", (one, two), {})
    three = ExtensionRoutes(vars(two)["adds"].extension, "server")
    with pytest.raises(TypeError, match=r"^Both: SubscriptionFilter.priceItems is taken by com.example/price and by"):
        type("Both", (one, type("Third", (), {"adds": three})), {})


def test_a_misspelled_extension_handler_is_refused_with_a_suggestion() -> None:
    with pytest.raises(TypeError, match=r"get_stok handles nothing of MCP 2026-07-28.*get_stock"):

        class Wrong(bindings.Server):  # type: ignore[misc]
            async def get_stok(self, params: Any, ctx: Any) -> Any: ...


def test_a_method_gets_the_result_types_of_all_extensions() -> None:
    server, _ = price(alternatives={"tools/call": ("Offered",)})
    both: Any = type("Both", (bindings.Server, server), {})
    call = both.dispatcher.extended(both).routes["tools/call"].method
    kinds = ["CallToolResult", "InputRequiredResult", "ReservedResult", "Offered"]
    assert [kind.__name__ for kind in call.answers] == kinds
    assert v2026_07_28.methods.CALL_TOOL.alternatives == (v2026_07_28.types.InputRequiredResult,)


# --- engines --------------------------------------------------------------------------------------------------


async def test_an_engine_wraps_handlers_and_filters_subscriptions() -> None:
    seen: list[Any] = []

    class Engine:
        def around(self, method: Any, handler: Any) -> Any:
            inner = super().around(method, handler)  # type: ignore[misc]
            if method.name != "tools/call":
                return inner

            async def counted(params: Any, ctx: Any) -> Any:
                seen.append(params.name)
                return await inner(params, ctx)

            return counted

        async def agree(self, wanted: Any, ctx: Any) -> Any:
            allowed = [item for item in wanted.stock_items or () if item != "secret"]
            return wanted.model_copy(update={"stock_items": allowed})

        async def get_stock(self, params: Any, ctx: Any) -> Any:
            return types.GetStockResult(count=42, ttl_ms=0)

    class Counting(Engine, bindings.Server):  # type: ignore[misc]
        """Methods of bases before the extension's stubs handle the extension's requests."""

    class Mine(Counting):
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            return v2026_07_28.types.CallToolResult(content=[])

    async with in_memory(Customer(), Mine()) as client:
        await client.call_tool("x")
        assert (await client.get_stock("x")).count == 42
        async with client.subscribed(types.StockSubscription(stock_items=["secret", "pear"])) as agreed:
            assert agreed.stock_items == ["pear"]
    assert seen == ["x"]


@pytest.mark.parametrize("is_declared", [True, False])
async def test_a_handler_notifies_only_clients_that_declare_the_extension(is_declared: bool) -> None:
    server, _ = price()

    class Tells(server):  # type: ignore[misc, valid-type]
        async def call_tool(self, params: Any, ctx: Any) -> Any:
            await ctx.notify_price("fig")
            return v2026_07_28.types.CallToolResult(content=[])

    async with played(Tells()) as raw:
        found = await raw.ask(lone(1, "tools/call", {"extensions": {PRICE: {}}} if is_declared else {}, name="x"))
        if is_declared:
            assert found == notification("notifications/price/get", {"item": "fig"})
            assert "result" in await raw.receive()
        else:
            assert found["error"]["code"] == -32021


# --- stateful era: extensions are declared once for a connection ----------------------------------------------


@pytest.mark.parametrize("is_declared", [True, False])
async def test_a_stateful_connection_declares_its_extensions_once(is_declared: bool) -> None:
    server, _ = price(v2025_11_25)

    class Older(server):  # type: ignore[misc, valid-type]
        info = v2025_11_25.types.Implementation(name="older", version="1")

        async def get_price(self, params: Any, ctx: Any) -> Any:
            assert ctx.extension(self.extensions[0]) == {"a": 1}
            await self.broadcast(lambda client: client.notify_price("fig"))
            return Price(price=7)

        async def call_tool(self, params: Any, ctx: Any) -> Any:
            await self.broadcast(lambda client: client.notify_price("fig"))
            ctx.require_extension(self.extensions[0])
            return v2025_11_25.types.CallToolResult(content=[])

    async with played(Older(), revisions=["2025-11-25"]) as raw:
        greeted = await raw.introduce("2025-11-25", {"extensions": {PRICE: {"a": 1}}} if is_declared else {})
        assert greeted["result"]["capabilities"]["extensions"] == {PRICE: {}}
        for id_, method, params in ((1, "price/get", {"item": "fig"}), (2, "tools/call", {"name": "x"})):
            found = await raw.ask(request(id_, method, params))
            if is_declared:
                assert found == notification("notifications/price/get", {"item": "fig"})
                assert "result" in await raw.receive()
            else:
                assert found["error"]["code"] == -32600
                assert "needs the extension 'com.example/price', which the client did not declare" in str(found)


@pytest.mark.parametrize("is_declared", [True, False])
async def test_a_client_sends_extension_requests_only_to_declaring_servers(is_declared: bool) -> None:
    _, kind = price(v2025_11_25)
    client = kind()
    left, right = pair()
    raw = Raw(right)

    async def welcome() -> None:
        asked = await raw.welcome({"extensions": {PRICE: {}}} if is_declared else {})
        assert asked["params"]["capabilities"]["extensions"] == {PRICE: {}}
        if is_declared:
            await raw.send(answer((await raw.receive())["id"], {"resultType": "complete", "price": 7}))

    async with running(welcome()), client.connected(left, exactly=True):
        if is_declared:
            assert (await client.get_price("fig")).price == 7
        else:
            await refused(client.get_price("fig"), CapabilityMissing)
    await raw.close()


async def test_a_client_may_use_only_the_extensions_that_it_declares() -> None:
    server, _ = price()

    class Both(Shop, server):  # type: ignore[misc, valid-type]
        async def get_price(self, params: Any, ctx: Any) -> Any:
            return Price(price=7)

    async with played(Both()) as raw:
        declared: dict[str, Any] = {"extensions": {PRICE: {}}}
        assert (await raw.ask(lone(1, "price/get", declared, item="fig")))["result"]["price"] == 7
        error = (await raw.ask(lone(2, "stock/get", declared, item="fig")))["error"]
        assert (error["code"], list(error["data"]["requiredCapabilities"]["extensions"])) == (-32021, [ID])
