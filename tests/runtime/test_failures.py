"""What a failure of a handler becomes is the same over every transport: one table, held over all of them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mcp_bindgen.http import HttpApp, http
from mcp_bindgen.http.client.legacy_sse import sse
from mcp_bindgen.http.server.legacy_sse import SseApp
from mcp_bindgen.runtime import ProtocolError, connect, serve
from mcp_bindgen.runtime.protocol.errors import INVALID_PARAMS, CapabilityMissing
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.runtime.transports.stdio import Pipes
from tests.runtime.http.test_legacy_sse import running as hosted
from tests.support.checked_connections import STATELESS, bindings, running

LATEST = "2025-11-25"
INTERNAL = -32603


class NotJson:
    """A value that cannot be written."""


async def _cancel_what_is_awaited() -> None:
    waiting = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(waiting.cancel)
    await waiting


async def _fail(kind: str, ctx: Any) -> Any:
    await asyncio.sleep(0)
    match kind:
        case "protocol error":
            raise ProtocolError(-32099, "no", {"why": "so"})
        case "invalid params":
            raise ProtocolError(INVALID_PARAMS, "not these")
        case "exception":
            raise LookupError("secret")
        case "nothing":
            return None
        case "unwritable error":
            raise ProtocolError(-32099, "no", NotJson())
        case "cancelled inside":
            await _cancel_what_is_awaited()
        case "own capability":
            raise CapabilityMissing("notifications/tools/list_changed", ("server", "tools", "listChanged"))
        case "timeout":
            raise TimeoutError("secret")
        case _:
            raise AssertionError(kind)


TABLE: Mapping[str, tuple[int, str, Any]] = {
    "protocol error": (-32099, "no", {"why": "so"}),
    "invalid params": (INVALID_PARAMS, "not these", None),
    "exception": (INTERNAL, "Internal error", None),
    "nothing": (INTERNAL, "Internal error: the handler of tools/call returned nothing, expected CallToolResult", None),
    "unwritable error": (INTERNAL, "Internal error", None),
    "cancelled inside": (INTERNAL, "Internal error", None),
    "own capability": (INTERNAL, "Internal error", None),
    "timeout": (INTERNAL, "Internal error", None),
}
"""What a handler does -> code, message and data of the error that its client gets."""


def failing(revision: str) -> Any:
    """A server whose only tool fails."""
    package: Any = bindings(revision)

    class Failing(package.Server):  # type: ignore[misc]
        info = package.types.Implementation(name="failing", version="1")

        async def call_tool(self, params: Any, ctx: Any) -> Any:
            return await _fail(params.name, ctx)

    return Failing()


@asynccontextmanager
async def in_memory(revision: str) -> AsyncIterator[Any]:
    left, right = pair()
    async with running(serve(right, failing(revision))), connect(left, bindings(revision).Client) as client:
        yield client


@asynccontextmanager
async def over_pipes(revision: str) -> AsyncIterator[Any]:
    """The transport of stdio, in one process."""
    (theirs, ours), (mine, yours) = os.pipe(), os.pipe()
    left, right = Pipes(mine, ours), Pipes(theirs, yours)
    async with running(serve(right, failing(revision))), connect(left, bindings(revision).Client) as client:
        yield client


@asynccontextmanager
async def over_http(revision: str) -> AsyncIterator[Any]:
    app = HttpApp(failing(revision), allowed_hosts=["*"])
    there = httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://localhost")
    async with (
        app.lifespan(),
        there as caller,
        http("http://localhost/mcp", client=caller) as transport,
        connect(transport, bindings(revision).Client) as client,
    ):
        yield client


@asynccontextmanager
async def over_sse(revision: str) -> AsyncIterator[Any]:
    with hosted(SseApp(failing(revision))) as url:
        async with sse(f"{url}/sse") as transport, connect(transport, bindings(revision).Client) as client:
            yield client


Way = Callable[[str], AbstractAsyncContextManager[Any]]


WAYS: Mapping[str, tuple[Way, str]] = {
    f"{name}, {revision}": (way, revision)
    for name, way in (("in memory", in_memory), ("over pipes", over_pipes), ("over HTTP", over_http), ("SSE", over_sse))
    for revision in (LATEST, STATELESS)
    if way is not over_sse or revision == LATEST
}


@pytest.mark.parametrize("name", WAYS)
def test_a_failure_is_the_same_everywhere(name: str) -> None:
    way, revision = WAYS[name]

    async def ask() -> None:
        async with way(revision) as client:
            for kind, expected in TABLE.items():
                error = await failure_of(client.call_tool(kind))
                said = error.message.partition(f" ({Path(__file__).name}:")[0].partition(" or ")[0]
                assert (error.code, said, error.data) == expected, kind

    asyncio.run(asyncio.wait_for(ask(), 20))
