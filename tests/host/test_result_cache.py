"""Cached results: their lifetime, their scope, and their invalidation (2 s)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_bindgen.host.result_cache import ResultCache
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.runtime import MethodNotFound, ProtocolError, connect, serve
from mcp_bindgen.runtime.session.targets import CacheScope
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.v2025_11_25 import Client as OldClient
from mcp_bindgen.v2026_07_28 import REVISION, Client, Server, methods
from mcp_bindgen.v2026_07_28 import types as mcp
from tests.harness.checked_connections import STATELESS, Recording, bounded, refusal, refused, running, stating, until
from tests.harness.scripted_http_server import Heard, serving
from tests.runtime.test_connecting import discovered, listening, posted
from tests.runtime.test_connecting import server as echo

SCHEMA = mcp.ToolInputSchema()


class Library(Server):
    """Server with two pages of tools, which records its requests."""

    info = mcp.Implementation(name="library", version="1")

    def __init__(self, ttl_ms: int = 60_000, scope: Any = "private") -> None:
        self.hints: dict[str, Any] = {"ttl_ms": ttl_ms, "cache_scope": scope}
        self.asked, self.edition = list[str](), 1

    async def list_tools(self, params: mcp.PaginatedRequestParams, ctx: Any) -> mcp.ListToolsResult:
        self.asked.append(f"tools {params.cursor}")
        if params.cursor not in (None, "2"):
            raise ProtocolError(-32602, "no such page")
        tool = mcp.Tool(name=f"tool{self.edition}", input_schema=SCHEMA)
        return mcp.ListToolsResult(tools=[tool], next_cursor="2" if params.cursor is None else None, **self.hints)

    async def call_tool(self, params: Any, ctx: Any) -> mcp.CallToolResult:
        self.asked.append("call")
        return mcp.CallToolResult(content=[])

    async def list_prompts(self, params: Any, ctx: Any) -> mcp.ListPromptsResult:
        self.asked.append("prompts")
        return mcp.ListPromptsResult(prompts=[], **self.hints)

    async def list_resources(self, params: Any, ctx: Any) -> mcp.ListResourcesResult:
        self.asked.append("resources")
        return mcp.ListResourcesResult(resources=[], **self.hints)

    async def list_resource_templates(self, params: Any, ctx: Any) -> mcp.ListResourceTemplatesResult:
        self.asked.append("templates")
        return mcp.ListResourceTemplatesResult(resource_templates=[], **self.hints)

    async def read_resource(self, params: mcp.ReadResourceRequestParams, ctx: Any) -> Any:
        self.asked.append(f"read {params.uri}")
        if params.uri == "book:asks":
            await ctx.ask_params("name", mcp.ListRootsRequestParams())
        text = mcp.TextResourceContents(uri=params.uri, text=f"edition {self.edition}")
        return mcp.ReadResourceResult(contents=[text], **self.hints)


class Reading(Client):
    """Client that answers `roots/list`."""

    async def on_list_roots(self, params: Any, ctx: Any) -> mcp.ListRootsResult:
        return mcp.ListRootsResult(roots=[])


class Clock:
    """Clock that tests set."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def reading(server: Any, cache: ResultCache | None = None, kind: Any = Reading) -> AsyncGenerator[Any]:
    """Connect a client to a server in memory."""
    left, right = pair()
    ours = Recording(left, kind.revision)
    options: Any = {} if cache is None else {"cache": cache}
    async with running(serve(right, server)), connect(ours, kind, **options) as client:
        yield client
    ours.check()


async def read_everything(client: Any) -> None:
    """Request every cacheable result."""
    assert [tool.name async for tool in client.iter_tools()] == ["tool1", "tool1"]
    for ask in (client.list_prompts, client.list_resources, client.list_resource_templates):
        await ask()
    for uri in ("book:1", "book:2"):
        await client.read_resource(uri)


# --- cacheable results ----------------------------------------------------------------------------------------


async def test_without_a_cache_every_call_sends_a_request() -> None:
    library = Library()
    async with reading(library) as client:
        for _ in range(2):
            await client.list_tools()
    assert library.asked == ["tools None"] * 2


async def test_a_result_is_requested_only_once_while_it_is_fresh() -> None:
    library, clock = Library(ttl_ms=1500), Clock()
    async with reading(library, ResultCache(clock=clock)) as client:
        first = await client.list_tools()
        clock.now += 1.499
        assert (await client.list_tools(), library.asked) == (first, ["tools None"])
        clock.now += 0.001
        library.edition = 2
        assert (await client.list_tools()).tools[0].name == "tool2"
        clock.now += 1.4
        assert (await client.list_tools()).tools[0].name == "tool2"
    assert library.asked == ["tools None"] * 2


async def test_exactly_the_cacheable_results_are_cached() -> None:
    library = Library()
    async with reading(library, ResultCache()) as client:
        asked = mcp.RequestParams(meta=client.metadata(mcp.RequestMetaObject, None))
        for _ in range(2):
            await read_everything(client)
            await client.call_tool("tool1")
            await client.request(methods.DISCOVER, asked)
    once = ["tools None", "tools 2", "prompts", "resources", "templates", "read book:1", "read book:2", "call"]
    assert library.asked == [*once, "call"]


async def test_a_result_with_a_ttl_of_zero_is_not_cached() -> None:
    library, cache = Library(ttl_ms=0), ResultCache()
    async with reading(library, cache) as client:
        await client.list_tools()
        await client.list_tools()
        assert len(cache) == 0
    assert len(library.asked) == 2


async def test_a_result_that_required_input_is_not_cached() -> None:
    library, cache = Library(), ResultCache()
    async with reading(library, cache) as client:
        for _ in range(2):
            assert (await client.read_resource("book:asks")).contents[0].text == "edition 1"
        assert len(cache) == 0
    assert library.asked == ["read book:asks"] * 4


async def test_stateful_results_are_not_cached() -> None:
    cache = ResultCache()
    async with reading(echo("2025-11-25"), cache, OldClient) as client:
        await client.list_tools()
        assert len(cache) == 0


async def test_the_cache_key_includes_the_params_without_their_meta() -> None:
    library = Library()
    async with reading(library, ResultCache()) as client:
        await client.list_tools()
        await client.list_tools(meta={"io.example/trace": "1"})
        await client.with_options(timeout=5, on_progress=print).list_tools()
        assert library.asked == ["tools None"]
        await client.list_tools("2")
        assert library.asked == ["tools None", "tools 2"]


async def test_callers_cannot_modify_cached_results() -> None:
    library = Library()
    async with reading(library, ResultCache()) as client:
        for _ in range(3):
            found = await client.list_tools()
            assert [tool.name for tool in found.tools] == ["tool1"]
            found.tools[0].name = "spoiled"
            found.tools.append(found.tools[0])
    assert library.asked == ["tools None"]


async def test_the_option_fresh_bypasses_and_updates_the_cache() -> None:
    library = Library()
    async with reading(library, ResultCache()) as client:
        await client.list_tools()
        library.edition = 2
        assert (await client.with_options(fresh=True).list_tools()).tools[0].name == "tool2"
        assert (await client.list_tools()).tools[0].name == "tool2"  # it replaced the cached result
        library.hints["ttl_ms"] = 0
        await client.with_options(fresh=True).list_tools()
        assert len(library.asked) == 3
        await client.list_tools()
        assert len(library.asked) == 4


async def test_the_least_recently_used_results_are_evicted_first() -> None:
    library, cache = Library(), ResultCache(limit=2)
    async with reading(library, cache) as client:
        for uri in ("book:1", "book:2", "book:1", "book:3", "book:1", "book:2"):
            await client.read_resource(uri)
            assert len(cache) <= 2
    assert library.asked == ["read book:1", "read book:2", "read book:3", "read book:2"]


async def test_a_huge_ttl_is_limited() -> None:
    clock = Clock()
    library, cache = Library(ttl_ms=10**30), ResultCache(clock=clock)
    async with reading(library, cache) as client:
        await client.list_tools()
        assert len(cache) == 1
        clock.now += 400 * 24 * 3600
        await client.list_tools()
    assert len(library.asked) == 2


# --- scope ----------------------------------------------------------------------------------------------------


async def test_private_results_are_cached_per_connection() -> None:
    for scope, asked in (("private", 2), ("public", 1)):
        library, cache = Library(scope=scope), ResultCache()
        app = HttpApp(library)
        async with app.lifespan(), listening(app) as (url, _):
            for number in range(2):
                headers = {"authorization": f"Bearer {number}"}
                async with connect(f"{url}/mcp", Client, cache=cache, headers=headers) as client:
                    for _ in range(2):
                        assert (await client.list_tools()).tools[0].name == "tool1"
            assert len(library.asked) == asked
            assert len(cache) == (1 if scope == "public" else 0)  # private results are removed with their connection


async def test_servers_do_not_share_cached_results() -> None:
    one, two, cache = Library(scope="public"), Library(scope="public"), ResultCache()
    two.edition = 2
    async with reading(one, cache) as first, reading(two, cache) as second:
        assert (await first.list_tools()).tools[0].name == "tool1"
        assert (await second.list_tools()).tools[0].name == "tool2"
    left, right = HttpApp(one, path="/mcp"), HttpApp(two, path="/mcp")
    async with left.lifespan(), right.lifespan(), listening(left) as (here, _), listening(right) as (there, _):
        for url, name in ((here, "tool1"), (there, "tool2")):
            async with connect(f"{url}/mcp", Client, cache=cache) as client:
                assert (await client.list_tools()).tools[0].name == name


async def test_a_client_class_can_define_a_cache() -> None:
    library = Library()
    async with reading(library, kind=type("Remembering", (Reading,), {"cache": ResultCache()})) as client:
        await client.list_tools()
        await client.list_tools()
    assert library.asked == ["tools None"]


async def test_header_parameters_of_tools_are_known_from_the_cached_list() -> None:
    """The second client gets the list from the cache, and needs its schemas for the header of each call."""

    class Choosy(Library):
        async def list_tools(self, params: Any, ctx: Any) -> mcp.ListToolsResult:
            self.asked.append("tools")
            wanted = {"city": {"type": "string", "x-mcp-header": "City"}}
            schema = mcp.ToolInputSchema.model_validate({"type": "object", "properties": wanted})
            return mcp.ListToolsResult(tools=[mcp.Tool(name="forecast", input_schema=schema)], **self.hints)

    library, cache = Choosy(scope="public"), ResultCache()
    app = HttpApp(library)
    async with app.lifespan(), listening(app) as (url, heard):
        for _ in range(2):
            async with connect(f"{url}/mcp", Client, cache=cache) as client:
                await client.list_tools()
                await client.call_tool("forecast", {"city": "Oslo"})
        assert posted(heard).count("tools/list") == 1


async def test_a_header_mismatch_reloads_the_tool_list_past_the_cache() -> None:
    async def play(heard: Heard) -> None:
        hints = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "private"}
        if heard.name == "server/discover":
            await heard.result(discovered(STATELESS))
        elif heard.name == "tools/list":
            wanted = {"type": "string"} | ({} if len(script.called("tools/list")) == 1 else {"x-mcp-header": "City"})
            schema = {"type": "object", "properties": {"city": wanted}}
            await heard.result({"tools": [{"name": "forecast", "inputSchema": schema}], **hints})
        elif heard.headers.get("mcp-param-city") == "Oslo":
            await heard.result({"content": [], "resultType": "complete"})
        else:
            await heard.json(refusal(heard.id, -32020), 400)

    async with serving(play) as script, connect(script.url, Client, cache=ResultCache()) as client:
        await client.list_tools()
        await client.call_tool("forecast", {"city": "Oslo"})
        await client.call_tool("forecast", {"city": "Oslo"})
        await client.list_tools()
    assert script.names == ["server/discover", "tools/list", "tools/call", "tools/list", "tools/call", "tools/call"]


# --- invalidation ---------------------------------------------------------------------------------------------

CHANGES: list[tuple[Any, Any, set[str]]] = [
    ("notify_tool_list_changed", (), {"tools None", "tools 2"}),
    ("notify_prompt_list_changed", (), {"prompts"}),
    ("notify_resource_list_changed", (), {"resources", "templates"}),
    ("notify_resource_updated", ("book:1",), {"read book:1"}),
    ("notify_resource_updated", ("book:2/page/7",), {"read book:2"}),
]


@pytest.mark.parametrize(("tell", "arguments", "again"), CHANGES)
async def test_a_change_notification_invalidates_only_the_affected_results(
    tell: str, arguments: Any, again: set[str]
) -> None:
    heard: list[str] = []

    class Listener(Reading):
        async def on_tool_list_changed(self, params: Any, ctx: Any) -> None:
            heard.append("tools")

    library, cache = Library(), ResultCache()
    lists = dict.fromkeys(["tools_list_changed", "prompts_list_changed", "resources_list_changed"], True)
    wanted: Any = {**lists, "resource_subscriptions": ["book:1", "book:2"]}
    async with reading(library, cache, Listener) as client:
        async with client.subscribed(mcp.SubscriptionFilter(**wanted)):
            await read_everything(client)
            kept = len(cache)
            library.asked.clear()
            await library.broadcast(lambda link: getattr(link, tell)(*arguments))
            await until(lambda: len(cache) < kept)
            await read_everything(client)
        assert (set(library.asked), len(library.asked)) == (again, len(again))
        assert heard == (["tools"] if "tools None" in again else [])


async def test_a_result_older_than_a_change_notification_is_not_cached() -> None:
    class Changing(Library):
        async def list_tools(self, params: mcp.PaginatedRequestParams, ctx: Any) -> mcp.ListToolsResult:
            await self.broadcast(lambda client: client.notify_tool_list_changed())
            return await super().list_tools(params, ctx)

    library, cache = Changing(), ResultCache()
    async with reading(library, cache) as client:
        await client.list_tools()
        assert len(cache) == 1
        async with client.subscribed(mcp.SubscriptionFilter(tools_list_changed=True)):
            await client.with_options(fresh=True).list_tools()
            assert len(cache) == 0


async def test_an_invalid_cursor_invalidates_its_cached_list() -> None:
    library, cache = Library(), ResultCache()
    async with reading(library, cache) as client:
        await client.list_prompts()
        [tool async for tool in client.iter_tools()]
        assert len(cache) == 3
        await refused(client.list_tools("3"), match="no such page")
        assert len(cache) == 1
        [tool async for tool in client.iter_tools()]
    assert library.asked == ["prompts", "tools None", "tools 2", "tools 3", "tools None", "tools 2"]


async def test_other_errors_invalidate_no_cached_result() -> None:
    class Refusing(Library):
        async def list_tools(self, params: mcp.PaginatedRequestParams, ctx: Any) -> mcp.ListToolsResult:
            if self.asked:
                raise MethodNotFound("x")
            return await super().list_tools(params, ctx)

    cache = ResultCache()
    async with reading(Refusing(), cache) as client:
        await client.list_tools()
        await refused(client.with_options(fresh=True).list_tools(), match="Method not found")
        assert len(cache) == 1


# --- comparison with a model ----------------------------------------------------------------------------------

STEP = st.one_of(
    st.tuples(st.just("ask"), st.sampled_from("abc"), st.sampled_from("xy"), st.integers(0, 3)),
    st.tuples(st.just("wait"), st.integers(0, 2)),
    st.tuples(st.just("change"), st.sampled_from("xy")),
    st.tuples(st.just("leave"), st.sampled_from("abc")),
)


@pytest.mark.full
@given(st.lists(STEP, max_size=40), st.integers(1, 5), st.sampled_from(["private", "public"]))
@settings(max_examples=150, deadline=None)
def test_a_cache_returns_no_stale_or_foreign_result_and_keeps_to_its_limit(
    steps: list[Any], limit: int, scope: Any
) -> None:
    """Cached results are never stale, never from another user, and never more than the limit."""

    @bounded()
    async def play() -> None:
        clock = Clock()
        cache, truth = ResultCache(limit, clock=clock), {"x": 0, "y": 0}
        until: dict[tuple[str, str, int], float] = {}
        for step in steps:
            match step:
                case ("ask", reader, server, ttl):

                    async def ask(server: str = server, ttl: int = ttl) -> Any:
                        text = f"{server}{truth[server]}"
                        until[scope if scope == "public" else reader, server, truth[server]] = clock.now + ttl
                        kept: Any = {"ttl_ms": ttl * 1000, "cache_scope": scope}
                        return mcp.ListPromptsResult(prompts=[mcp.Prompt(name=text)], **kept)

                    found = await cache.through(CacheScope(server, reader), methods.LIST_PROMPTS, PARAMS, ask)
                    assert found.prompts[0].name == f"{server}{truth[server]}"
                    key = (scope if scope == "public" else reader, server, truth[server])
                    assert until[key] > clock.now or found.ttl_ms == ttl * 1000
                case ("wait", seconds):
                    clock.now += seconds
                case ("change", server):
                    truth[server] += 1
                    cache.invalidate(server, REVISION, "notifications/prompts/list_changed")
                case ("leave", reader):
                    cache.forget(CacheScope(None, reader))
            assert len(cache) <= limit

    play()


PARAMS = mcp.PaginatedRequestParams.model_validate({"_meta": stating()})
