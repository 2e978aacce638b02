"""A handler's failure becomes the same error over every transport; one table lists all failures."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest

from mcp_bindgen.http import HttpApp, http
from mcp_bindgen.http.client.legacy_sse import sse
from mcp_bindgen.http.server.legacy_sse import SseApp
from mcp_bindgen.runtime import ProtocolError, connect, serve
from mcp_bindgen.runtime.protocol.errors import INVALID_PARAMS, CapabilityMissing
from mcp_bindgen.runtime.transports.memory import pair
from mcp_bindgen.runtime.transports.pipes import Pipes
from tests.harness.checked_connections import STATELESS, bindings, refused, running
from tests.http.test_legacy_sse import running as hosted

LATEST = "2025-11-25"


class NotJson:
    """Value that cannot be written as JSON."""


class Panic(BaseException):
    """Exception like `PanicException` of PyO3."""


async def _cancel_what_is_awaited() -> None:
    waiting = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(waiting.cancel)
    await waiting


async def _cancel_itself() -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel)  # as a time limit made by hand would
    await asyncio.get_running_loop().create_future()


def _recurse(ctx: Any) -> Any:
    return _recurse(ctx)


def _unwritable(ctx: Any) -> Any:
    return bindings(ctx.revision).types.CallToolResult(content=[]).model_copy(update={"content": [NotJson()]})


INTERNAL = (-32603, "Internal error", None)
RETURNED = "Internal error: the handler of tools/call returned {}, expected CallToolResult"
TABLE: Mapping[str, tuple[Any, tuple[int, str, Any]]] = {
    "protocol error": (ProtocolError(-32099, "no", {"why": "so"}), (-32099, "no", {"why": "so"})),
    "invalid params": (ProtocolError(INVALID_PARAMS, "not these"), (INVALID_PARAMS, "not these", None)),
    "exception": (LookupError("secret"), INTERNAL),
    "group": (ExceptionGroup("secret", [LookupError("secret")]), INTERNAL),
    "nothing": (lambda ctx: None, (-32603, RETURNED.format("nothing"), None)),
    "list": (lambda ctx: [1], (-32603, RETURNED.format("list"), None)),
    "unwritable error": (ProtocolError(-32099, "no", NotJson()), INTERNAL),
    "unwritable message": (ProtocolError(-32099, cast(Any, NotJson())), INTERNAL),
    "unwritable result": (_unwritable, INTERNAL),
    "cancelled": (asyncio.CancelledError(), INTERNAL),
    "cancelled inside": (lambda ctx: _cancel_what_is_awaited(), INTERNAL),
    "cancelled by itself": (lambda ctx: _cancel_itself(), INTERNAL),
    "own capability": (CapabilityMissing("notifications/tools/list_changed", ("server", "tools")), INTERNAL),
    "timeout": (TimeoutError("secret"), INTERNAL),
    "recursion": (_recurse, INTERNAL),
    "end of an iteration": (StopAsyncIteration(), INTERNAL),
    "sys.exit": (SystemExit("secret"), INTERNAL),
    "sys.exit in a task group": (BaseExceptionGroup("secret", [SystemExit("secret")]), INTERNAL),
    "panic": (Panic("secret"), INTERNAL),
}
"""Name -> exception or result of a handler, and code, message and data of the error that its client gets."""


def failing(revision: str) -> Any:
    """Return a server with one tool, which fails."""
    package: Any = bindings(revision)

    class Failing(package.Server):  # type: ignore[misc]
        info = package.types.Implementation(name="failing", version="1")

        async def call_tool(self, params: Any, ctx: Any) -> Any:
            await asyncio.sleep(0)
            failure, _ = TABLE[params.name]
            if isinstance(failure, BaseException):
                raise failure
            result = failure(ctx)
            return await result if inspect.isawaitable(result) else result

    return Failing()


@asynccontextmanager
async def in_memory(revision: str) -> AsyncIterator[Any]:
    left, right = pair()
    async with running(serve(right, failing(revision))), connect(left, bindings(revision).Client) as client:
        yield client


@asynccontextmanager
async def over_pipes(revision: str) -> AsyncIterator[Any]:
    """Connect over the stdio transport, within one process."""
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
def test_a_handler_failure_gives_the_same_error_over_every_transport(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    way, revision = WAYS[name]

    async def ask() -> None:
        async with way(revision) as client:
            for kind, (_, expected) in TABLE.items():
                caplog.clear()
                error = await refused(client.call_tool(kind))
                said = error.message.partition(f" ({Path(__file__).name}:")[0].partition(" or ")[0]
                assert (error.code, said, error.data) == expected, kind
                assert bool(caplog.records) is (error.code == INTERNAL[0]), kind

    asyncio.run(asyncio.wait_for(ask(), 20))
