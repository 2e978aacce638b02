"""App with tools that run as tasks, and connections to this app."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from mcp_bindgen.app import App
from mcp_bindgen.extensions.tasks import TaskLimits, Tasks, TaskStore, ToolTask, background
from mcp_bindgen.runtime import Context, ProtocolError
from mcp_bindgen.runtime.session.endpoint import lifespans
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.targets import Provider, Served
from tests.harness.checked_connections import connected

QUICK = TaskLimits(poll=0.02)


def jobs() -> App:
    app = App("jobs", tasks=Tasks(limits=QUICK, lease=0.4))

    @app.tool
    async def greet(name: str) -> str:
        return f"Hello, {name}!"

    @app.tool(task="optional")
    async def slow(seconds: float, ctx: Context) -> str:
        await ctx.progress(1, 2, "half")
        await anyio.sleep(seconds)
        return "done"

    @app.tool(task="required")
    async def fails() -> str:
        raise ValueError("no")

    @app.tool(task="optional")
    async def refuses() -> str:
        raise ProtocolError(-32000, "never", {"why": 1})

    @app.tool(task="optional")
    async def delete(name: str, ctx: Context) -> str:
        return "deleted" if await ctx.ask(f"Delete {name}?", bool) else "kept"

    @app.tool(task=ToolTask(support="required", late=True))
    async def order(ctx: Context) -> str:
        name = await ctx.ask("Who?", bool)
        await background(ctx)
        return f"for {name}"

    @app.tool(task=ToolTask(late=True))
    async def cached(known: bool, ctx: Context) -> str:
        if not known:
            await background(ctx)
        return "value"

    return app


def one_job(tool: Any, store: TaskStore | None = None, **options: Any) -> list[Served]:
    """Return the servers of an app with a single tool, which may run as a task."""
    app = App("jobs", tasks=Tasks(store, **{"limits": QUICK, **options}))
    app.add_tool(tool, task="optional")
    return [app.served()]


@asynccontextmanager
async def served(client: Any, *servers: Server | Provider) -> AsyncGenerator[Any]:
    """Connect a client to servers."""
    async with lifespans(servers), connected(client, *servers) as connection:
        yield connection.client


async def statuses(server: Any) -> list[str]:
    """Return the statuses of all tasks without an owner."""
    return [record.status for record in await server.own_tasks.page("")]


def text(result: Any) -> str:
    """Return the text of a tool's result."""
    found: str = result.content[0].text
    return found
