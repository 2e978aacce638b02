# mypy: ignore-errors
# pyright: basic, reportMissingImports=false
"""Server of FastMCP with tasks; it listens at the port of the environment variable `PORT`."""

import asyncio
import os
from datetime import timedelta

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

app = FastMCP("tasks", version="1.0.0")
app.add_extension(TasksExtension())
as_task = TaskConfig(mode="optional", poll_interval=timedelta(milliseconds=50))
only_as_task = TaskConfig(mode="required", poll_interval=timedelta(milliseconds=50))


@app.tool
async def greet(name: str) -> str:
    return f"Hello, {name}!"


@app.tool(task=as_task)
async def slow_compute(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return f"slept {seconds}"


@app.tool(task=only_as_task)
async def failing_job() -> str:
    raise ToolError("The job has failed")


@app.tool(task=as_task)
async def confirm_delete(filename: str, ctx: Context) -> str | InputRequiredResult:
    answers = ctx.input_responses or {}
    if "confirm" not in answers:
        schema = {"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}
        question = ElicitRequest(params=ElicitRequestFormParams(message=f"Delete {filename}?", requested_schema=schema))
        return InputRequiredResult(input_requests={"confirm": question})
    return f"{filename}: {answers['confirm'].content}"


if __name__ == "__main__":
    app.run(transport="http", host="127.0.0.1", port=int(os.environ["PORT"]), show_banner=False)
