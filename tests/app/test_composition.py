"""Middleware, dependencies, state and views of apps, called by a client of one revision of each era."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, nullcontext
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import anyio
import pytest
from pydantic import Field

from mcp_bindgen import v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28
from mcp_bindgen.app import (
    App,
    BadFunction,
    Call,
    Completion,
    Context,
    Depends,
    IconLike,
    Image,
    Next,
    ResourceNotFound,
    Result,
    Stored,
    ToolError,
    proxy,
)
from mcp_bindgen.app.serving import InProcess
from mcp_bindgen.runtime import Identity, InputRequired, ProtocolError
from mcp_bindgen.runtime.protocol.errors import SessionRequired
from mcp_bindgen.runtime.session.endpoint import Servers, all_servers
from mcp_bindgen.runtime.session.targets import Served
from mcp_bindgen.sqlite import SqliteEventStore
from mcp_bindgen.testing import connected
from tests.harness.checked_connections import refused
from tests.harness.effort import each

PNG = b"\x89PNG\r\n\x1a\n"


async def text_of(client: Any, tool: str, **arguments: Any) -> str:
    """Return the first text of a result."""
    return str((await client.call_tool(tool, arguments)).content[0].text)


async def names_of(client: Any) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


class Db:
    """Database that records whether it is open."""

    def __init__(self) -> None:
        self.is_open, self.rows = True, ["Emma"]


events: list[str] = []


@pytest.fixture(params=[v2025_11_25, v2026_07_28])
def package(request: pytest.FixtureRequest) -> Any:
    """Return one revision of each era."""
    return request.param


def books() -> App:
    """Return an app with entries of all kinds, a lifespan and middleware."""

    @asynccontextmanager
    async def lifespan() -> AsyncGenerator[Db]:
        db = Db()
        yield db
        db.is_open = False

    app = App("books", lifespan=lifespan)

    @app.middleware
    async def audit(call: Call, next: Next) -> Result:
        state: Db = call.ctx.state
        events.append(f"{call.kind} {call.name} {dict(call.arguments)} {state.is_open}")
        return await next(call)

    @app.tool(tags={"read"})
    def find(words: str, anything: Context[Db]) -> list[str]:
        """Find books."""
        return [row for row in anything.state.rows if words in row]

    @app.tool(tags={"write"})
    async def drop(title: str, ctx: Context[Db]) -> None:
        """Drop a book."""
        ctx.state.rows.remove(title)

    @app.resource("book://{title}")
    async def read(title: str, ctx: Context[Db]) -> str:
        if title not in ctx.state.rows:
            raise ResourceNotFound(f"there is no book {title!r}")
        return f"{title}: {ctx.call.name}"

    @app.resource("book://count")
    def count(ctx: Context[Db]) -> str:
        raise ValueError("the shelf is locked")

    @app.prompt
    def summarize(title: str) -> str:
        return f"Summarize {title}"

    @app.completion("summarize", "title")
    def titles(asked: Completion) -> list[str]:
        return [row for row in ["Emma", "Faust"] if row.startswith(asked.value)]

    return app


async def test_a_mounted_app_keeps_its_state_middleware_and_completions(package: Any) -> None:
    library, part = App("library"), books()
    library.mount(part, "shop")

    @library.middleware
    async def count(call: Call, next: Next) -> Result:
        events.append(f"outer {call.name}")
        return await next(call)

    events.clear()
    async with connected(package.Client(), library) as client:
        assert await names_of(client) == ["shop_find", "shop_drop"]
        assert await text_of(client, "shop_find", words="mm") == '{"result":["Emma"]}'
        found = await client.read_resource("book://shop/Emma")
        assert (found.contents[0].uri, found.contents[0].text) == ("book://shop/Emma", "Emma: book://Emma")
        assert (await client.get_prompt("shop_summarize", {"title": "x"})).messages[0].content.text == "Summarize x"
        ref = package.types.PromptReference(name="shop_summarize")
        completed = await client.complete(ref, package.types.CompleteRequestParamsArgument(name="title", value="F"))
        assert completed.completion.values == ["Faust"]
    assert events == [
        *("outer shop_find", "tool find {'words': 'mm'} True"),
        *("outer book://shop/Emma", "resource book://Emma {'title': 'Emma'} True"),
        *("outer shop_summarize", "prompt summarize {'title': 'x'} True"),
        *("outer shop_summarize", "completion summarize {'title': 'F'} True"),
    ]


async def test_the_completion_of_an_app_is_used_for_mounted_entries(package: Any) -> None:
    library = App("library")
    library.mount(books(), "shop")

    @library.completion("shop_summarize", "title")
    def titles(asked: Completion) -> list[str]:
        return [f"{asked.name} {asked.value}"]

    async with connected(package.Client(), library) as client:
        ref = package.types.PromptReference(name="shop_summarize")
        completed = await client.complete(ref, {"name": "title", "value": "F"})
        assert completed.completion.values == ["shop_summarize F"]


SPELLINGS = {
    "vault": ("note://%76ault/secret", "NOTE://vault/secret", "note://VAULT/./a/../%73ecret"),
    "books": ("note://books/%76ault/secret", "NOTE://BOOKS/vault/secret", "note://%62ooks/vault/%73ecret"),
}
"""First part of a URI -> other spellings of it."""


@each("uri", ["note://vault/secret", "note://vault/{name}"])
@each("prefix", ["", "Books", "books"])
async def test_middleware_gets_one_spelling_of_a_uri(package: Any, uri: str, prefix: str) -> None:
    inner, outer, seen = App("inner"), App("outer"), list[str]()

    async def watch(call: Call, next: Next) -> Result:
        seen.append(call.name)
        return await next(call)

    def read(ctx: Context, name: str = "") -> str:
        return f"{ctx.call.name}"

    inner.add_resource(uri, read)
    inner.middleware(watch)
    outer.middleware(watch)
    outer.mount(inner, prefix)
    whole = f"note://{prefix}/vault/secret" if prefix else "note://vault/secret"
    async with connected(package.Client(), outer) as client:
        for spelling in (whole, *SPELLINGS["books" if prefix else "vault"]):
            assert (await client.read_resource(spelling)).contents[0].text == "note://vault/secret"
            assert (spelling, seen) == (spelling, [whole, "note://vault/secret"])
            seen.clear()


async def test_a_prefix_is_removed_from_the_beginning_of_a_uri_only(package: Any) -> None:
    inner, outer = App("inner"), App("outer")

    @inner.resource("file:///{+path}")
    def read(path: str, ctx: Context) -> str:
        return f"{ctx.call.name} {path}"

    outer.mount(inner, "a")
    async with connected(package.Client(), outer) as client:
        found = await client.read_resource("file://a//a/x/a/y")
        assert found.contents[0].text == "file:///a/x/a/y a/x/a/y"


async def test_state_and_call_of_an_app_are_restored_after_next(package: Any) -> None:
    library, part = App("library", lifespan=lambda: nullcontext("library")), books()
    library.mount(part, "shop")
    seen: list[tuple[Any, str]] = []

    @library.middleware
    async def outer(call: Call, next: Next) -> Result:
        try:
            return await next(call)
        finally:
            seen.append((call.ctx.state, call.ctx.call.name))

    @library.middleware
    async def repeating(call: Call, next: Next) -> Result:
        await next(call)
        assert call.ctx.state == "library"
        return await next(call)

    async with connected(package.Client(), library) as client:
        await client.call_tool("shop_find", {"words": "mm"})
        await client.read_resource("book://shop/Emma")
        await client.get_prompt("shop_summarize", {"title": "x"})
        ref = package.types.PromptReference(name="shop_summarize")
        await client.complete(ref, {"name": "title", "value": "F"})
        await refused(client.read_resource("book://shop/count"))
    names = ["shop_find", "book://shop/Emma", "shop_summarize", "shop_summarize", "book://shop/count"]
    assert seen == [("library", name) for name in names]


async def test_a_failed_resource_read_reports_the_reason(package: Any) -> None:
    async with connected(package.Client(), books()) as client:
        ulysses, count = client.read_resource("book://Ulysses"), client.read_resource("book://count")
        await refused(ulysses, match="Resource not found: there is no book 'Ulysses'")
        await refused(count, match="book://count failed: ValueError: the shelf is locked")


async def test_middleware_changes_arguments_and_results_or_refuses_calls(package: Any) -> None:
    app = App("changed")

    @app.middleware
    async def outer(call: Call, next: Next) -> Result:
        if call.arguments["number"] > 9:
            raise ToolError("too large")
        result = await next(call.with_arguments(number=call.arguments["number"] + 1))
        return {**result, "content": [*result["content"], {"type": "text", "text": "checked"}]}

    @app.tool
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    async with connected(package.Client(), app) as client:
        result = await client.call_tool("double", {"number": 3})
        assert [block.text for block in result.content] == ['{"result":8}', "checked"]
        assert result.structured_content == {"result": 8}
        assert (await client.call_tool("double", {"number": 10})).content[0].text == "too large"


async def test_middleware_knows_the_rounds_of_a_call_that_asks(package: Any) -> None:
    app, inner, seen = App("asks"), App("inner"), list[tuple[int, str]]()
    app.mount(inner)

    @app.middleware
    async def record(call: Call, next: Next) -> Result:
        outcome = "failed"
        try:
            result, outcome = await next(call), "answered"
            return result
        except InputRequired:
            outcome = "asks"
            raise
        finally:
            seen.append((call.round, outcome))

    @inner.tool
    async def both(ctx: Context) -> list[str]:
        """Ask one question, then two at once."""
        said = [await ctx.ask("A?", str)]

        async def ask(question: str) -> None:
            said.append(await ctx.ask(question, str))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "B?")
            tasks.start_soon(ask, "C?")
        return sorted(said)

    class Home(package.Client):  # type: ignore[misc]
        async def on_elicit(self, params: Any, ctx: Any) -> Any:
            return package.types.ElicitResult(action="accept", content={"answer": params.message})

    if package is v2025_03_26:
        return  # it cannot be asked
    async with connected(Home(), app) as client:
        assert (await client.call_tool("both")).structured_content == {"result": ["A?", "B?", "C?"]}
    asked = [(1, "asks"), (2, "asks"), (3, "answered")]
    assert seen == (asked if package is v2026_07_28 else [(1, "answered")])


def test_mounting_refuses_cycles_and_duplicate_names() -> None:
    outer, inner = App("outer"), books()
    outer.mount(inner, "a")
    with pytest.raises(ValueError, match="cannot be mounted in itself"):
        inner.mount(outer)
    with pytest.raises(ValueError, match="the tool 'a_find' exists already"):
        outer.mount(inner, "a")


async def test_a_live_mount_follows_changes_and_a_static_mount_does_not() -> None:
    live, static, part = App("live", dynamic=["tools"]), App("static"), App("part", dynamic=["tools"])

    def first() -> None: ...
    def second() -> None: ...

    part.add_tool(first)
    live.mount(part, "p")
    static.mount(part, live=False)
    part.add_tool(second)
    live.rename_tools({"p_second": "last", "p_third": "third"})
    part.add_tool(second, name="third")
    part.remove_tool("first")
    async with v2025_11_25.Client.connect(live) as client:
        assert (await names_of(client), (await client.call_tool("last", {})).content) == (["last", "third"], [])
    async with v2025_11_25.Client.connect(static) as client:
        assert await names_of(client) == ["first"]


def test_tools_can_swap_names_and_keep_the_order_of_the_new_names() -> None:
    app = App("library")
    names = [f"tool_{number}" for number in range(8)]
    for number, name in enumerate(names):
        app.add_tool(shelf, name=name, title=str(number))
    app.rename_tools(dict(zip(names, reversed(names), strict=True)))
    found = [(tool["name"], tool["title"]) for tool in app.document["tools"]]
    assert found == [(name, str(number)) for number, name in enumerate(reversed(names))]


@each("is_renamed_first", [True, False])
async def test_rules_about_former_names_hold_for_new_names(is_renamed_first: bool) -> None:
    app = App("library")
    app.mount(books())
    if not is_renamed_first:
        app.disable("drop")
    app.rename_tools({"drop": "remove"})
    if is_renamed_first:
        app.disable("drop")
    async with v2025_11_25.Client.connect(app) as client:
        assert await names_of(client) == ["find"]
        await refused(client.call_tool("remove", {"title": "Emma"}), ProtocolError, "Unknown tool: remove")


async def test_disabled_entries_are_neither_listed_nor_called(package: Any) -> None:
    app = App("library")
    app.mount(books())
    app.disable(tags={"write"})
    app.disable("book://{title}")
    async with connected(package.Client(), app) as client:
        assert await names_of(client) == ["find"]
        await refused(client.call_tool("drop", {"title": "Emma"}), ProtocolError, "Unknown tool: drop")
        await refused(client.read_resource("book://Emma"), ProtocolError, "Resource not found")
        app.enable("drop")
        assert await names_of(client) == ["find", "drop"]


async def test_clients_are_told_of_disabled_entries_of_apps_at_any_depth() -> None:
    inner, middle, outer = App("inner"), App("middle"), App("outer", dynamic={"tools"})

    @inner.tool
    def first() -> None: ...

    middle.mount(inner)
    outer.mount(middle)
    changed = anyio.Event()

    class Watching(v2025_11_25.Client):
        async def on_tool_list_changed(self, params: Any, ctx: Any) -> None:
            changed.set()

    async with connected(Watching(), outer):
        inner.disable("first")
        with anyio.fail_after(5):
            await changed.wait()


def test_enable_and_disable_rules_can_be_limited_to_a_subject() -> None:
    app = books()
    app.disable(tags={"write"})
    app.enable(tags={"write"}, subject="ada")
    callers = (Identity(subject="ada"), Identity(subject="bob"), None)
    assert [app.allows("drop", {"write"}, caller) for caller in callers] == [True, False, False]


def test_a_rule_for_a_subject_does_not_enable_entries_for_the_same_subject_of_another_issuer() -> None:
    app = books()
    app.disable(tags={"write"})
    app.enable(tags={"write"}, subject="ada")
    app.enable(tags={"write"}, subject="bob", issuer="https://one.example")
    app.disable("find", subject="eve")
    app.disable("find", subject="bob", issuer="https://two.example")
    issuers = ("", "https://one.example", "https://two.example")
    (server, *_) = all_servers([app])

    def found(name: str, subject: str) -> list[bool]:
        callers = (Identity(subject=subject, issuer=issuer) for issuer in issuers)
        contexts: list[Any] = [SimpleNamespace(identity=caller) for caller in callers]
        handler = server.contract.handlers["tool"][name]  # type: ignore[attr-defined]
        return [server.offers(handler, context) for context in contexts]  # type: ignore[attr-defined]

    with pytest.raises(ValueError, match="issuer= without subject="):
        app.enable("drop", issuer="https://one.example")
    assert found("drop", "ada") == [True, False, False]
    assert found("drop", "bob") == [False, True, False]
    assert found("find", "eve") == [False, False, False], "a rule that disables holds for any issuer"
    assert found("find", "bob") == [True, True, False]


async def test_a_default_in_an_annotation_reaches_the_function(package: Any) -> None:
    app = App("library")

    @app.tool
    def repeat(count: Annotated[int, Field(default=3)], word: Annotated[str, Field(default_factory=str)]) -> str:
        """Repeat a word."""
        return f"{count} {word!r}"

    @app.resource("page://{?number}")
    def page(number: Annotated[int, Field(default=1)]) -> str:
        """Return a page."""
        return f"page {number}"

    async with connected(package.Client(), app) as client:
        assert [await text_of(client, "repeat"), await text_of(client, "repeat", count=4)] == ["3 ''", "4 ''"]
        assert (await client.read_resource("page://")).contents[0].text == "page 1"


async def test_a_tool_that_exits_fails_and_the_server_goes_on(package: Any) -> None:
    app = App("library")

    @app.tool
    def leave(code: int) -> str:
        """Call a library that ends the program."""
        raise SystemExit(code)

    @app.tool
    async def leave_loop(code: int) -> str:
        raise SystemExit(code)

    class Panic(BaseException):
        """An exception like `PanicException` of PyO3."""

    @app.tool
    async def panic() -> str:
        raise Panic("index out of bounds")

    @app.tool
    def interrupt() -> str:
        raise KeyboardInterrupt

    @app.tool
    async def group() -> None:
        async with anyio.create_task_group():
            raise Panic("index out of bounds")

    @app.resource("gone://")
    async def gone() -> str:
        raise SystemExit(3)

    async with connected(package.Client(), app) as client:
        for name, code in product(("leave", "leave_loop"), (0, 3, 3)):
            expected = f"{name} failed: RuntimeError: the handler called sys.exit({code})"
            assert await text_of(client, name, code=code) == expected
        for name, raised in (("interrupt", "KeyboardInterrupt"), ("panic", "Panic('index out of bounds')")):
            assert await text_of(client, name) == f"{name} failed: RuntimeError: the handler raised {raised}"
        assert "Panic('index out of bounds')" in await text_of(client, "group")
        await refused(
            client.read_resource("gone://"), ProtocolError, "gone:// failed: RuntimeError: the handler called"
        )


def rows(ctx: Context[Db]) -> Generator[list[str]]:
    yield ctx.state.rows
    events.append(f"closed {ctx.call.name}")


async def test_completions_take_the_context_state_and_dependencies(package: Any) -> None:
    @asynccontextmanager
    async def opened() -> AsyncGenerator[Db]:
        yield Db()

    inner, outer = App("inner", lifespan=opened), App("outer", lifespan=lambda: nullcontext("state of outer"))

    @inner.prompt
    def summarize(title: str, words: str) -> str:
        return title

    @inner.completion("summarize", "title")
    def titles(
        asked: Completion, ctx: Context[Db], known: Annotated[list[str], Depends(rows)], more: str = "!"
    ) -> list[str]:
        return [f"{ctx.call.name} {asked.name} {row}{more}" for row in known]

    outer.mount(inner, "shop")

    @outer.completion("shop_summarize", "words")
    async def words(ctx: Context[str], typed: Completion) -> list[str]:
        return [ctx.state, typed.value, str(ctx.identity), ctx.call.name]

    events.clear()
    async with connected(package.Client(), outer) as client:
        ref = package.types.PromptReference(name="shop_summarize")
        found = await client.complete(ref, {"name": "title", "value": ""})
        assert found.completion.values == ["summarize shop_summarize Emma!"]
        assert events == ["closed summarize"], "the rest of a dependency runs after the completion"
        found = await client.complete(ref, {"name": "words", "value": "F"})
        assert found.completion.values == ["state of outer", "F", "None", "shop_summarize"]


async def test_each_variable_of_a_template_can_be_completed(package: Any) -> None:
    app = App("library")

    @app.resource("shelf://{genre}/{title}")
    def shelved(genre: Literal["novel", "poem"], title: str) -> str:
        return title

    @app.completion("shelf://{genre}/{title}", "title")
    def titles(asked: Completion) -> list[str]:
        return ["Emma", "Faust"]

    template = package.types.ResourceTemplateReference(uri="shelf://{genre}/{title}")
    async with connected(package.Client(), app) as client:
        found = [await client.complete(template, {"name": name, "value": ""}) for name in ("genre", "title")]
        assert [one.completion.values for one in found] == [["novel", "poem"], ["Emma", "Faust"]]
        unknown = client.complete(template, {"name": "author", "value": ""})
        await refused(unknown, ProtocolError, "The template shelf://{genre}/{title} has no such argument")


log: list[str] = []


def connection(request: Context) -> Generator[Db]:
    db = Db()
    log.append("open")
    yield db
    db.is_open = False
    log.append("closed")


async def shelf(db: Annotated[Db, Depends(connection)]) -> list[str]:
    return db.rows


@asynccontextmanager
async def session(db: Annotated[Db, Depends(connection)]) -> AsyncGenerator[str]:
    yield f"session of {len(db.rows)}"
    log.append("session closed")


Shelf = Annotated[list[str], Depends(shelf)]


async def test_dependencies_are_made_once_for_a_call_and_closed_after_it(package: Any) -> None:
    log.clear()
    app = App("injected")

    @app.tool
    def count(own: Shelf, db: Annotated[Db, Depends(connection)], name: Annotated[str, Depends(session)]) -> str:
        """Count books."""
        log.append(f"called {own is db.rows} {db.is_open}")
        return name

    assert app.document["tools"][0]["inputSchema"]["properties"] == {}
    async with connected(package.Client(), app) as client:
        assert await text_of(client, "count") == "session of 1"
    assert log == ["open", "called True True", "session closed", "closed"]


def broken(size: int) -> None: ...


def test_an_unfillable_parameter_of_a_dependency_is_refused() -> None:
    def tool(db: Annotated[None, Depends(broken)]) -> None: ...

    with pytest.raises(BadFunction, match="broken: nothing fills the parameter size; annotate it as Context"):
        App("bad").tool(tool)


async def test_user_values_persist_and_session_values_expire(tmp_path: Path) -> None:
    store = SqliteEventStore(tmp_path / "users.db")
    cart, seen = Stored(list[str], list, store=store), Stored(dict[str, int], dict, per="session", ttl=0.2)
    app = App("cart")

    @app.tool
    async def add(title: str, ctx: Context) -> int:
        """Add a book."""
        async with cart.edit(ctx) as titles:
            titles.append(title)
            return len(titles)

    @app.tool
    async def visit(ctx: Context) -> int:
        """Count visits."""
        visits = await seen.get(ctx)
        await seen.set(ctx, {"n": visits.get("n", 0) + 1})
        return visits.get("n", 0)

    for expected in (1, 2):
        async with v2025_11_25.Client.connect(app) as client:
            assert await text_of(client, "add", title="Emma") == f'{{"result":{expected}}}'
            assert [await text_of(client, "visit") for _ in range(2)] == ['{"result":0}', '{"result":1}']
            await anyio.sleep(0.25)
            assert await text_of(client, "visit") == '{"result":0}'
    store.close()
    with closing(sqlite3.connect(tmp_path / "users.db")) as file:
        assert file.execute("select count(*) from sessions").fetchone() == (1,)


async def test_a_session_value_without_a_session_is_refused() -> None:
    ctx: Any = SimpleNamespace(link=object())
    await refused(Stored(int, int, per="session").get(ctx), SessionRequired)


async def test_tool_search_replaces_the_list_of_tools(package: Any) -> None:
    app = App("many", tool_search=True)
    app.mount(books(), "shop")

    @app.tool(scopes=())
    def weather(city: str) -> str:
        """Tell the weather of a city."""
        return f"sun over {city}"

    async with connected(package.Client(), app) as client:
        assert await names_of(client) == ["search_tools", "call_tool"]
        found = await client.call_tool("search_tools", {"words": "find some book"})
        assert [tool["name"] for tool in found.structured_content["tools"]] == ["shop_find", "shop_drop"]
        assert await text_of(client, "call_tool", name="weather", arguments={"city": "Oslo"}) == "sun over Oslo"
        result = await client.call_tool("call_tool", {"name": "shop_find", "arguments": {"words": "E"}})
        assert result.structured_content == {"result": ["Emma"]}
        assert (await client.call_tool("call_tool", {"name": "call_tool"})).is_error


@pytest.mark.parametrize("theirs", [v2025_03_26, v2026_07_28])
async def test_a_proxy_serves_the_entries_of_a_server_of_any_revision(package: Any, theirs: Any) -> None:
    remote, library = books(), App("library")
    remote.revisions = [theirs]
    library.mount(proxy(remote), "far")
    library.disable("far_drop")
    for _ in range(2):
        async with connected(package.Client(), library) as client, package.Client.connect(library) as second:
            assert await names_of(client) == await names_of(second) == ["far_find"]
            assert await text_of(client, "far_find", words="mm") == '{"result":["Emma"]}'
            assert (await second.read_resource("book://far/Emma")).contents[0].text == "Emma: book://Emma"
            assert (await client.get_prompt("far_summarize", {"title": "x"})).messages[0].content.text == "Summarize x"
            await refused(client.read_resource("book://far/Ulysses"), ProtocolError, "there is no book 'Ulysses'")
    assert library.document["tools"] == []


class Odd(v2025_11_25.Server):
    """Server whose lists have entries that a proxy cannot offer."""

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        names = ["mine", "good", "good", "caf\udce9"]
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}

    async def list_resources(self, params: Any, ctx: Any) -> Any:
        return {"resources": [{"uri": uri, "name": "n"} for uri in ("x://a", "X://a", "x://b")]}

    async def list_resource_templates(self, params: Any, ctx: Any) -> Any:
        return {"resourceTemplates": [{"uriTemplate": uri, "name": "n"} for uri in ("x://{a b}", "y://{a}")]}

    async def list_prompts(self, params: Any, ctx: Any) -> Any:
        page = {"prompts": [{"name": "p"}]}
        return {**page, "nextCursor": "2"} if params.cursor is None else {"prompts": 7}


class OddTarget(InProcess):
    def served(self) -> Served:
        return Servers(Odd())


async def test_a_proxy_leaves_out_entries_that_it_cannot_offer(caplog: pytest.LogCaptureFixture) -> None:
    far, first, second, told = proxy(OddTarget()), App("first"), App("second"), list[list[str]]()
    second.tool(name="mine")(shelf)
    first.mount(far)
    second.mount(far)
    for _ in range(2):
        caplog.clear()
        async with v2025_11_25.Client.connect(second) as client:
            assert await names_of(client) == ["mine", "good"]
            assert [tool["name"] for tool in first.document["tools"]] == ["good"]
            assert [one.uri async for one in client.iter_resources()] == ["x://a", "x://b"]
            assert [one.uri_template async for one in client.iter_resource_templates()] == ["y://{a}"]
            assert [one.name async for one in client.iter_prompts()] == ["p"]
        told.append([line.getMessage() for line in caplog.records if "proxy:" in line.message])
        assert [line.partition(" left out")[0] for line in told[-1]] == [
            *("proxy: the tool 'mine' is", "proxy: the tool 'good' is"),
            *("proxy: the tool 'caf\ufffd' is", "proxy: the rest of prompts is"),
            *("proxy: the resource 'X://a' is", "proxy: the template 'x://{a b}' is"),
        ]
    assert told[0] == told[1]  # no part of an entry stays
    assert first.document["tools"] == []


# --- options and content --------------------------------------------------------------------------------------


class Case:
    """Object with a method that is a tool."""

    size = 3

    def capacity(self) -> int:
        """Return the number of places."""
        return self.size


async def test_tools_support_options_methods_and_content_by_return_type(package: Any, tmp_path: Path) -> None:
    app = App("content")
    app.add_tool(Case().capacity)
    (tmp_path / "a.png").write_bytes(PNG)

    @app.tool(timeout=0.05, icons=[{"src": "https://example.org/i.png"}])
    async def slow() -> None:
        """Wait."""
        await anyio.sleep(5)

    @app.tool(output_schema={"type": "object", "required": ["n"]})
    def counted(right: bool) -> dict[str, int]:
        """Count."""
        return {"n": 1} if right else {}

    @app.tool
    def picture() -> bytes:
        """Draw."""
        return PNG

    @app.tool
    def report() -> list[str | Image]:
        """Report."""
        return ["a chart", Image(tmp_path / "a.png")]

    @app.tool
    def union(size: int | str) -> str:
        """Take either."""
        return str(size)

    async with connected(package.Client(), app) as client:
        tools = {tool["name"]: tool for tool in [one.model_dump() async for one in client.iter_tools()]}
        assert tools["slow"]["icons"] == [{"src": "https://example.org/i.png"}]
        assert tools["counted"]["outputSchema"] == {"type": "object", "required": ["n"]}
        assert await text_of(client, "capacity") == '{"result":3}'
        assert await text_of(client, "slow") == "slow took longer than 0.05 s"
        assert await text_of(client, "counted", right=True) == '{"n":1}'
        assert "'n' is missing" in await text_of(client, "counted", right=False)
        (block,) = (await client.call_tool("picture", {})).content
        assert (block.type, block.mime_type) == ("image", "image/png")
        assert [block.type for block in (await client.call_tool("report", {})).content] == ["text", "image"]
        assert "arguments.size: wanted integer or string" in await text_of(client, "union", size=[1])
        assert "'siez' is unknown; did you mean 'size'?" in await text_of(client, "union", size=1, siez=2)


# --- icons and website ----------------------------------------------------------------------------------------


async def test_an_app_introduces_itself_with_icons_and_a_website_where_the_revision_has_them(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b").write_bytes(PNG)
    wire = {"src": "https://example.org/c", "sizes": ["48x48"]}
    data = {"src": "data:image/png;base64,iVBORw0KGgo=", "mimeType": "image/png"}
    icons: list[IconLike] = [
        tmp_path / "a.png",
        str(tmp_path / "b"),
        "https://example.org/i.svg?v=2",
        "https://example.org/i",
        wire,
    ]
    expected = [
        *(data, data, {"src": "https://example.org/i.svg?v=2", "mimeType": "image/svg+xml"}),
        *({"src": "https://example.org/i"}, wire),
    ]
    app = App("shown", title="Shown", icons=icons, website="https://example.org")
    app.add_tool(silent_picture, icons=data["src"])
    both = {"icons": expected, "websiteUrl": "https://example.org"}
    cases: list[tuple[Any, dict[str, Any]]] = [
        (v2024_11_05, {}),
        (v2025_06_18, {"title": "Shown"}),
        (v2025_11_25, {"title": "Shown", **both}),
        (v2026_07_28, {"title": "Shown", **both}),
    ]
    for package, more in cases:
        async with connected(package.Client(), app) as client:
            assert client.server_info.model_dump() == {"name": "shown", "version": "0", **more}
            (tool,) = [one.model_dump() async for one in client.iter_tools()]
            assert tool["icons"] == [data]
    plain = App("plain", icons=[], website=None)
    assert plain.document["serverInfo"] == {"name": "plain", "version": "0"}
    assert App("one", icons=tmp_path / "a.png").document["serverInfo"]["icons"] == [data]


def silent_picture() -> None:
    """Draw nothing."""


def test_an_icon_that_is_no_image_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the icon .*none\.png: No such file or directory; name an image, or its URL"):
        App("x", icons=tmp_path / "none.png")
    (tmp_path / ".env").write_text("PASSWORD=x\n", "utf-8")
    with pytest.raises(ValueError, match=r"the icon .*\.env: the file is \S+; name an image, or its URL"):
        App("x", icons=tmp_path / ".env")


# --- mistakes that a signature does not show -------------------------------------------------------------------


def silent(ctx: Context) -> None:
    """Call a coroutine function from a plain function, which cannot await it."""
    ctx.info("x")  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]


async def forgetful(ctx: Context) -> None:
    """Forget to await a coroutine."""
    ctx.info("x")  # type: ignore[unused-coroutine]  # pyright: ignore[reportUnusedCoroutine]


def test_a_forgotten_await_is_found_at_import() -> None:
    with pytest.raises(BadFunction, match=r"nothing awaits it; write await ctx\.info") as caught:
        App("bad").tool(forgetful)
    assert caught.value.place.startswith(f"{__file__}:")


def test_decorators_report_a_missing_uri_and_an_unknown_option() -> None:
    app: Any = App("bad")
    with pytest.raises(BadFunction, match=r'needs a URI; write @app\.resource\("app://silent"\)'):
        app.resource(silent)
    with pytest.raises(TypeError, match=r"unknown option 'titel'; did you mean 'title'\?"):
        app.tool(titel="x")(books)


def test_advice_is_logged_when_the_app_is_first_served(caplog: pytest.LogCaptureFixture) -> None:
    app = App("advised")

    @app.tool
    def bare(size: int | None) -> None: ...

    app.served()
    app.served()
    assert [record.message.partition(": ")[2] for record in caplog.records] == [
        "bare: size may be None, but callers must pass it; write size: int | None = None to make it optional",
        "bare: no description, by which models choose tools; write a docstring",
    ]


async def test_debug_mode_reports_functions_that_block(caplog: pytest.LogCaptureFixture) -> None:
    app = App("debugged", debug=True)

    @app.tool
    async def blocks() -> object:
        """Block the event loop, and return a value that JSON cannot express."""
        await anyio.sleep(0)
        time.sleep(0.15)
        return object()

    async with v2025_11_25.Client.connect(app) as client:
        assert "returned object, which JSON cannot express; return a model" in await text_of(client, "blocks")
    assert "blocks blocked the event loop for 0." in caplog.text
    assert "write def" in caplog.text
