"""What handlers get wrong and the other side need not suffer: progress, tasks, completions; and what logs show."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import anyio
import pytest

from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.runtime.logs import MAX_CHARACTERS, harmless
from mcp_bindgen.v2025_11_25 import Client, Context, Server
from mcp_bindgen.v2025_11_25 import types as mcp
from tests.support.checked_connections import (
    STATEFUL,
    STATELESS,
    answer,
    bindings,
    connected,
    notification,
    played,
    request,
)

LATEST = "2025-11-25"
REVISIONS = [*STATEFUL, STATELESS]
every_revision = pytest.mark.parametrize("revision", REVISIONS)


def tool(work: Any, revision: str = LATEST) -> Any:
    """A server whose tools do one thing."""
    package: Any = bindings(revision)

    async def call_tool(self: Any, params: Any, ctx: Any) -> Any:
        await work(params, ctx)
        return package.types.CallToolResult(content=[])

    return type("Made", (package.Server,), {"call_tool": call_tool})()


@every_revision
async def test_progress_only_grows(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    async def work(params: Any, ctx: Any) -> None:
        for amount in (1, 3, 3, 2, 3.5, -1, 4):
            await ctx.progress(amount)

    seen: list[Any] = []
    async with connected(bindings(revision).Client(), tool(work, revision)) as connection:
        asking = connection.client.with_options(on_progress=lambda params: seen.append(params.progress))
        await asking.call_tool("x")
        await asking.call_tool("x")
    assert seen == [1, 3, 3.5, 4] * 2
    assert "progress 2 after 3 is not sent: it must increase" in caplog.text


@every_revision
async def test_asynchronous_progress_callbacks_are_awaited_in_order(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(params: Any, ctx: Any) -> None:
        for amount in range(1, 6):
            await ctx.progress(amount)

    seen: list[Any] = []

    async def on_progress(params: Any) -> None:
        await anyio.sleep(0.01 / params.progress)
        if params.progress == 3:
            raise ValueError("three")
        seen.append(params.progress)

    async with connected(bindings(revision).Client(), tool(work, revision)) as connection:
        await connection.client.with_options(on_progress=on_progress).call_tool("x")
    assert seen == [1, 2, 4, 5]
    assert caplog.text.count("the progress callback of tools/call failed") == 1


async def test_a_request_that_fails_cancels_its_progress_callback() -> None:
    started, ended = anyio.Event(), anyio.Event()

    async def work(params: Any, ctx: Any) -> None:
        await ctx.progress(1)
        await started.wait()
        raise ProtocolError(-32000, "no")

    async def on_progress(params: Any) -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    async with connected(bindings(LATEST).Client(), tool(work)) as connection:
        with pytest.raises(ProtocolError):
            await connection.client.with_options(on_progress=on_progress).call_tool("x")
        await ended.wait()


@every_revision
async def test_a_progress_callback_cannot_cancel_its_caller_or_outlast_total_timeout(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(params: Any, ctx: Any) -> None:
        await ctx.progress(1)
        await ctx.progress(2)

    seen: list[Any] = []

    async def on_progress(params: Any) -> None:
        seen.append(params.progress)
        if params.progress == 2:
            await anyio.sleep_forever()
        ended = asyncio.create_task(anyio.sleep_forever())
        ended.cancel()
        await ended

    async with connected(bindings(revision).Client(), tool(work, revision)) as connection:
        await connection.client.with_options(on_progress=on_progress, total_timeout=1).call_tool("x")
    assert seen == [1, 2]
    assert "has not ended within total_timeout" in caplog.text


async def test_a_server_that_is_asked_what_it_speaks_has_nothing_to_complain_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Clients of both eras ask each server a question that only the newer ones know."""
    async with played(Server()) as (client, _):
        await client.send(request(1, "server/discover"))
        refused = await client.receive()
    assert refused["error"]["message"] == "Invalid request: the connection is not initialized"
    assert not [record for record in caplog.records if record.levelno >= logging.INFO]


@pytest.mark.parametrize("revision", [LATEST, STATELESS])
async def test_nothing_is_told_of_a_request_that_is_over(revision: str) -> None:
    answered, told = anyio.Event(), anyio.Event()

    async def afterwards(ctx: Any) -> None:
        await answered.wait()
        await ctx.progress(2)
        await ctx.log("error", "late")
        told.set()

    async with anyio.create_task_group() as tasks:

        async def work(params: Any, ctx: Any) -> None:
            await ctx.progress(1)
            tasks.start_soon(afterwards, ctx)

        async with connected(bindings(revision).Client(), tool(work, revision)) as connection:
            asking = connection.client.with_options(on_progress=lambda params: None)
            if revision == LATEST:
                await asking.call_tool("x")
            else:
                meta = {**connection.client.link.meta, "io.modelcontextprotocol/logLevel": "debug"}
                types, methods = bindings(revision).types, bindings(revision).methods
                params = types.CallToolRequestParams.model_validate({"name": "x", "_meta": meta})
                await asking.request(methods.CALL_TOOL, params)
            answered.set()
            await told.wait()
            assert connection.theirs.methods() == ["notifications/progress"]


async def test_nothing_is_told_of_a_request_that_was_cancelled() -> None:
    begun = anyio.Event()

    async def work(params: Any, ctx: Any) -> None:
        try:
            begun.set()
            await anyio.sleep(20)
        finally:
            with anyio.CancelScope(shield=True):
                await ctx.progress(1)
                await ctx.log("error", "cancelled")

    async with played(tool(work)) as (raw, _):
        await raw.introduce(LATEST)
        await raw.send(request(1, "tools/call", {"name": "x", "_meta": {"progressToken": "t"}}))
        await begun.wait()
        await raw.send(notification("notifications/cancelled", {"requestId": 1}))
        assert await raw.ask(request(2, "ping")) == answer(2, {})


async def test_tasks_are_for_those_who_ask(caplog: pytest.LogCaptureFixture) -> None:
    class Slow(Server):
        async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> Any:
            now = "2026-01-01T00:00:00Z"
            task = mcp.Task(task_id="t", status="working", ttl=None, created_at=now, last_updated_at=now)
            return mcp.CreateTaskResult(task=task)

    async with played(Slow()) as (raw, _):
        await raw.introduce(LATEST)
        asked = await raw.ask(request(1, "tools/call", {"name": "x", "task": {}}))
        assert asked["result"]["task"]["taskId"] == "t"
        unasked = await raw.ask(request(2, "tools/call", {"name": "x"}))
        said = "Internal error: the handler of tools/call returned CreateTaskResult without 'task'"
        assert unasked["error"]["code"] == -32603
        assert unasked["error"]["message"].startswith(said)
    assert "returned CreateTaskResult without 'task'" in caplog.text


@pytest.mark.parametrize("revision", STATEFUL)  # the schema of later ones says it, so their models do not take more
async def test_no_more_than_a_hundred_completions(revision: str, caplog: pytest.LogCaptureFixture) -> None:
    package: Any = bindings(revision)
    types = package.types

    class Many(package.Server):  # type: ignore[misc]
        async def complete(self, params: Any, ctx: Any) -> Any:
            count = int(params.argument.value)
            known = {"total": 5000} if count == 200 else {}
            return types.CompleteResult(completion={"values": [str(n) for n in range(count)], **known})

    async with connected(package.Client(), Many()) as connection:

        async def complete(count: int) -> Any:
            reference = {"type": "ref/prompt", "name": "p"}
            call: Any = connection.client.complete
            return (await call(reference, {"name": "a", "value": str(count)})).completion

        assert len((await complete(100)).values) == 100
        assert not caplog.records
        found = await complete(101)
        assert (found.values, found.total, found.has_more) == ([str(n) for n in range(100)], 101, True)
        found = await complete(200)
        assert (len(found.values), found.total, found.has_more) == (100, 5000, True)
    assert "1 values beyond the first 100 are not sent" in caplog.text


# --- logs -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ümläute", "plain text, ümläute"),
        ("a\nERROR forged", "a\\nERROR forged"),
        ("\x1b[2J\x07\r", "\\x1b[2J\\x07\\r"),
        ("\u202eevil\u2028\x9b", "\\u202eevil\\u2028\\x9b"),
        ("\ud800", "\\ud800"),
        ("x" * (MAX_CHARACTERS + 1), "x" * MAX_CHARACTERS + f"... ({MAX_CHARACTERS + 1} characters)"),
    ],
)
def test_text_of_others_is_harmless(text: str, shown: str) -> None:
    assert harmless(text) == shown


class Records(logging.Handler):
    """Formats records as a file would."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += self.format(record).split("\n")


async def test_nobody_writes_into_our_log() -> None:
    class Careless(Server):
        async def call_tool(self, params: mcp.CallToolRequestParams, ctx: Context) -> Any:
            raise ValueError(f"unknown: {params.name}")

    records = Records()
    logger = logging.getLogger("mcp_bindgen")
    logger.addHandler(records)
    try:
        async with played(Careless()) as (raw, _):
            await raw.introduce(LATEST)
            for n, name in enumerate(["a\nERROR forged\x1b[31m", "m" * 1_000_000]):
                assert "error" in await raw.ask(request(n, name))
            assert "error" in await raw.ask(request("c", "tools/call", {"name": "b\nERROR forged\x1b[31m"}))
        async with connected(Client(), Careless()) as connection:
            with pytest.raises(ProtocolError):
                await connection.client.call_tool("x")
    finally:
        logger.removeHandler(records)
    assert records.lines
    assert not any(line.startswith("ERROR forged") for line in records.lines)
    assert all(line.isprintable() and len(line) < 3000 for line in records.lines)
