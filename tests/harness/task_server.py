"""A server with tasks in SQLite over HTTP, which tests kill: `python -m tests.harness.task_server PORT FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from mcp_bindgen.app import App
from mcp_bindgen.extensions.tasks import SqliteTaskStore, TaskLimits, Tasks, ToolTask
from mcp_bindgen.http.server.serve import serve_http
from mcp_bindgen.runtime import Context


def app(folder: Path) -> App:
    """Return an app with a tool that asks a question and takes time, and a tool that must not run twice."""
    made = App("jobs", tasks=Tasks(SqliteTaskStore(folder / "tasks.db"), limits=TaskLimits(poll=0.05), lease=0.6))

    def ran(name: str) -> None:
        with (folder / name).open("a") as file:
            file.write("ran\n")

    @made.tool(task=ToolTask(reruns=5))
    async def careful(ctx: Context) -> str:
        ran("careful")
        allowed = await ctx.ask("Go on?", bool)
        await anyio.sleep(0.5)
        return f"done: {allowed}"

    @made.tool(task="optional")
    async def once() -> str:
        ran("once")
        await anyio.sleep_forever()
        return "never"

    return made


if __name__ == "__main__":
    port, folder = sys.argv[1:]
    anyio.run(lambda: serve_http(app(Path(folder)), address=f"127.0.0.1:{port}"))
