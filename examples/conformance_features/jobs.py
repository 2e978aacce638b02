"""The tools that run as tasks, for clients that understand those."""

from __future__ import annotations

import anyio

from mcp_bindgen.extensions.tasks import ToolTask, background
from mcp_bindgen.runtime import ProtocolError

from .call import BOOLEAN, STRING, Call, Object, entered, text
from .tools import ToolFailed, tool

POLL = 0.2  # seconds between two looks of a client

TASKS = {
    "slow_compute": ToolTask(poll=POLL),
    "failing_job": ToolTask(support="required", poll=POLL),
    "protocol_error_job": ToolTask(poll=POLL),
    "confirm_delete": ToolTask(poll=POLL),
    "multi_input": ToolTask(poll=POLL),
    "test_tool_with_task": ToolTask(support="required", poll=POLL, late=True),
}
"""Name -> how the tool runs."""


@tool("Greets; too quick for a task.", name=STRING)
async def greet(call: Call) -> list[Object]:
    return [text(f"Hello, {call.arguments['name']}!")]


@tool("Computes for some seconds.", seconds={"type": "number"}, label=STRING)
async def slow_compute(call: Call) -> list[Object]:
    await anyio.sleep(call.arguments["seconds"])
    return [text(f"{call.arguments['label']} took {call.arguments['seconds']} seconds")]


@tool("Works for a second, and fails.")
async def failing_job(call: Call) -> list[Object]:
    await anyio.sleep(1)
    raise ToolFailed("The job has failed")


@tool("Fails with an error of the protocol.")
async def protocol_error_job(call: Call) -> list[Object]:
    raise ProtocolError(-32603, "The job cannot be done")


@tool("Deletes a file, once the user confirms it.", filename=STRING)
async def confirm_delete(call: Call) -> list[Object]:
    name = call.arguments["filename"]
    answer = await call.form("confirm", f"Delete {name}?", ["confirm"], confirm=BOOLEAN)
    return [text(f"{name}: {'deleted' if entered(answer, 'confirm') == 'True' else 'kept'}")]


@tool("Asks two questions at the same time.")
async def multi_input(call: Call) -> list[Object]:
    answers: dict[str, Object] = {}

    async def ask(field: str, message: str, schema: Object) -> None:
        answers[field] = await call.form(field, message, [field], **{field: schema})

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "name", "What is your name?", STRING)
        tasks.start_soon(ask, "confirm", "Shall we begin?", BOOLEAN)
    return [text(", ".join(f"{field}: {entered(answers[field], field)}" for field in sorted(answers)))]


@tool("Asks for a name, and then goes on as a task.")
async def test_tool_with_task(call: Call) -> list[Object]:
    answer = await call.form("user_name", "What is your name?", ["name"], name=STRING)
    await background(call.context)
    return [text(f"Hello, {entered(answer, 'name')}!")]
