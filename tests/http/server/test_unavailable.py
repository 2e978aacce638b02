"""A server that stops or has no store answers with a server error; the client raises a class for it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.cluster.session_registry import RedisStore
from mcp_bindgen.http import HttpApp, SseApp
from mcp_bindgen.http.server.event_store import StoreUnavailable
from mcp_bindgen.runtime import ServerUnavailable, connect
from mcp_bindgen.runtime.protocol.errors import INTERNAL_ERROR
from mcp_bindgen.sqlite import SqliteEventStore
from tests.harness.any_revision import Tools, of_revision
from tests.harness.checked_connections import initialize, refused
from tests.harness.effort import each
from tests.harness.failing_store import FailingStore
from tests.harness.http_wires import Wires, wires
from tests.harness.scripted_http_server import Heard, answer, ask, introduce, notification, request, serving, talking

LATEST = "2025-11-25"


Server = of_revision(Tools, v2025_11_25)


async def stopping(app: Any, http: Wires) -> Any:
    """Return the response of a stopping server."""
    app.leave()
    path, method = ("/sse", "GET") if not isinstance(app, HttpApp) else ("/mcp", "POST")
    return await http.ask(method, initialize(LATEST) if method == "POST" else None, path=path)


async def without_store(app: Any, http: Wires) -> Any:
    """Return the response of a server that cannot reach its store."""
    return await http.ask("POST", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, mcp_session_id="x" * 43)


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (lambda folder: HttpApp(Server()), stopping),
        (lambda folder: HttpApp(Server(), store=SqliteEventStore(folder / "events")), stopping),
        (lambda folder: SseApp(Server()), stopping),
        (lambda folder: HttpApp(Server(), store=FailingStore(StoreUnavailable())), without_store),
        (lambda folder: HttpApp(Server(), store=RedisStore(f"unix://{folder}/none")), without_store),
        (lambda folder: HttpApp(Server(), store=RedisStore(f"unix://{folder}/none")), stopping),
    ],
    ids=["memory", "sqlite", "sse", "away", "redis", "redis stopping"],
)
async def test_an_unavailable_server_returns_503_with_a_server_error(
    make: Callable[[Path], Any], cause: Any, tmp_path: Path
) -> None:
    app = make(tmp_path)
    async with wires(app) as http:
        wire = await cause(app, http)
        assert await wire.status() == 503, wire.received
        assert int(wire.headers["retry-after"]) == ServerUnavailable.retry_after
        error = wire.json["error"]
        assert (error["code"], error["data"]) == (INTERNAL_ERROR, {"error": "unavailable"})
        assert "id" not in wire.json
        assert "disk" not in error["message"]


class Shop(v2026_07_28.Server):
    """Server whose tool announces another list of tools."""

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        return {"tools": []}

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        await self.broadcast(lambda client: client.notify_tool_list_changed())
        return {"content": []}


async def test_a_broadcast_without_the_store_fails_with_its_error(tmp_path: Path) -> None:
    app = HttpApp(Shop(), store=RedisStore(f"unix://{tmp_path}/none"))
    async with wires(app) as http, v2026_07_28.Client.connect(f"http://127.0.0.1:{http.port}/mcp") as client:
        await refused(client.call_tool("change", {}), match="The store cannot be reached at the moment")


@asynccontextmanager
async def stopped() -> AsyncGenerator[Any]:
    """Connect a client to a server that then stops."""
    app = HttpApp(Server())
    async with wires(app) as http, v2025_11_25.Client.connect(f"http://127.0.0.1:{http.port}/mcp") as client:
        assert (await client.list_tools()).tools == []
        app.leave()
        yield client


async def test_our_client_raises_server_unavailable() -> None:
    async with stopped() as client:
        error = await refused(client.list_tools(), ServerUnavailable, "the server is stopping")
        assert (error.code, error.retry_after) == (INTERNAL_ERROR, 5)


async def refuse(heard: Heard) -> None:
    """Answer any request as a stopping server does."""
    error = {"code": INTERNAL_ERROR, "message": "the server is stopping", "data": {"error": "unavailable"}}
    await heard.json({"jsonrpc": "2.0", "error": error}, 503, retry_after="5")


@each("client", [v2026_07_28.Client, None])
async def test_a_client_tries_no_other_revision_with_a_stopping_server(client: Any) -> None:
    async with serving(refuse) as script:
        opening = connect(script.url) if client is None else client.connect(script.url, exactly=True)
        with pytest.raises(ServerUnavailable):
            async with opening:
                pass
        assert [heard.name for heard in script.heard] == ["server/discover"]


@each("status", [429, 502, 503])
async def test_a_temporarily_refused_notification_is_sent_again(status: int) -> None:
    refused: list[str] = []

    async def play(heard: Heard) -> None:
        if heard.name == "initialize":
            await heard.result(mcp_session_id="s-1")
        elif heard.method == "GET":
            await heard.end(405)
        elif heard.name == "notifications/initialized" and len(refused) < 2:
            refused.append(heard.name)
            await heard.end(status)
        elif heard.name == "tools/call":
            await heard.result()
        else:
            await heard.end()

    async with talking(play) as (there, script):
        await introduce(there)
        assert await ask(there, request(1)) == answer(1)
        names = [heard.name for heard in script.heard if heard.method == "POST"]
        assert names == ["initialize", *["notifications/initialized"] * 3, "tools/call"]


async def test_a_permanently_refused_notification_is_not_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    async with talking(lambda heard: heard.end(400)) as (there, script):
        await there.send([notification()])
        assert len(script.heard) == 1
    assert "a message was not taken" in caplog.text
