"""Application that ASGI servers run in tests: both eras, with tools that are slow, ask, and report on the process."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import tracemalloc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from starlette.types import Message, Receive, Scope, Send

from mcp_bindgen import v2025_11_25, v2026_07_28
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.runtime.session.rounds import RequestStateSigner
from mcp_bindgen.sqlite import SqliteEventStore
from mcp_bindgen.v2026_07_28 import types as mcp
from tests.harness.http_wires import Observed

WORKER = str(os.getpid())
QUESTIONS = ("name", "colour")
JOURNAL = os.environ.get("WORKER_JOURNAL", os.devnull)
"""File that grows by one byte for each progress notification of `count`."""

STORE = os.environ.get("WORKER_STORE")
"""File of a persistent event store, if any."""

NEWS = Path(os.environ.get("WORKER_NEWS", "/nonexistent"))
"""File that stands for state shared by workers; when it changes, they notify listening clients."""

SIGN = b"x-worker"
"""Response header with the process id of the worker."""


class Tools:
    """Tools for both eras."""

    types: Any

    async def list_tools(self, params: Any, ctx: Any) -> Any:
        more = {"ttl_ms": 0, "cache_scope": "private"} if self.types is mcp else {}
        names = ("echo", "count", "ask", "vitals")
        tools = [self.types.Tool(name=name, input_schema=self.types.ToolInputSchema()) for name in names]
        return self.types.ListToolsResult(tools=tools, **more)

    async def call_tool(self, params: Any, ctx: Any) -> Any:
        text = await getattr(self, f"_{params.name}")(ctx, **(params.arguments or {}))
        return self.types.CallToolResult(content=[self.types.TextContent(text=text)])

    async def _echo(self, ctx: Any, text: str) -> str:
        return text

    async def _count(self, ctx: Any, to: int, pause: float = 0.01) -> str:
        journal = os.open(JOURNAL, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        try:
            for number in range(to):
                await ctx.progress(number, to)
                os.write(journal, b"x")
                await anyio.sleep(pause)
        finally:
            os.close(journal)
        return "done"

    async def _ask(self, ctx: Any) -> str:
        """Ask several questions in sequence; in the stateless era, each answer needs another request."""
        said = []
        for key in QUESTIONS:
            form = {"type": "object", "properties": {key: {"type": "string"}}}
            schema = self.types.ElicitRequestFormParamsRequestedSchema.model_validate(form)
            params = self.types.ElicitRequestFormParams(message=f"{key}?", requested_schema=schema)
            answer = await ctx.ask_params(key, params)
            said.append(answer.content[key])
        return " ".join(said)

    async def _vitals(self, ctx: Any) -> str:
        gc.collect()
        return json.dumps(
            {
                "tasks": len(asyncio.all_tasks()),
                "sessions": len(served.servers[0].connections),
                "requests": len(observed.bodies),
                "listeners": sum(len(server.audience) for server in served.servers),
                "memory": tracemalloc.get_traced_memory()[0],
            }
        )


class New(Tools, v2026_07_28.Server):
    """Server of the stateless era."""

    types = mcp
    info = mcp.Implementation(name="worker", version="1")
    request_state_signer = RequestStateSigner([os.environ.get("WORKER_KEY", WORKER).ljust(16).encode()])

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            yield
            tasks.cancel_scope.cancel()

    async def _watch(self) -> None:
        known = NEWS.exists()
        while True:
            await anyio.sleep(0.02)
            if NEWS.exists() != known:
                known = not known
                await self.broadcast(lambda client: client.notify_tool_list_changed())


class Old(Tools, v2025_11_25.Server):
    """Server of the era with sessions."""

    types = v2025_11_25.types
    info = v2025_11_25.types.Implementation(name="worker", version="1")


if "WORKER_TRACE" in os.environ:
    tracemalloc.start()

HOSTS = os.environ.get("ALLOWED_HOSTS", "localhost,127.0.0.1").split(",")

served = HttpApp(Old(), New(), store=None if STORE is None else SqliteEventStore(STORE), allowed_hosts=HOSTS)

observed = Observed(served)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Add the header with the process id to all responses."""

    async def signed(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (SIGN, WORKER.encode())]}
        await send(message)

    await observed(scope, receive, signed if scope["type"] == "http" else send)
