"""Failures of stores and queues during a task, invalid results, and malicious servers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any
from unittest import mock

import anyio
import pytest

from mcp_bindgen.extensions.tasks import LocalRunner, MemoryTaskStore
from mcp_bindgen.extensions.tasks.record import TaskRecord
from mcp_bindgen.extensions.tasks.service import RunningTask
from mcp_bindgen.runtime import ProtocolError
from mcp_bindgen.runtime.protocol.errors import StoreUnavailable
from mcp_bindgen.runtime.session.server import Server
from mcp_bindgen.runtime.session.subscriptions import Subscription
from mcp_bindgen.v2026_07_28 import types as mcp
from mcp_bindgen.v2026_07_28.extensions import tasks
from tests.extensions.tasks.jobs import QUICK, one_job, served, statuses, text
from tests.extensions.tasks.test_service import NAME, begun, echo, for_ever, serving, task, until
from tests.extensions.tasks.test_service import tasks as service_of
from tests.harness.checked_connections import refused
from tests.harness.scripted_http_server import eventually


class Failing(MemoryTaskStore):
    """Store that is unavailable for the operations that a test selects."""

    def __init__(self) -> None:
        super().__init__()
        self.ends_refused = self.reads_refused = False
        self.reads = 0

    async def read(self, id: str) -> TaskRecord | None:
        self.reads += 1
        if self.reads_refused:
            raise StoreUnavailable
        return await super().read(id)

    async def swap(self, record: TaskRecord) -> bool:
        if self.ends_refused and record.is_over:
            raise StoreUnavailable
        return await super().swap(record)


# --- engine ---------------------------------------------------------------------------------------------------


async def test_a_result_that_is_no_json_fails_the_task_at_once() -> None:
    async with serving(mock.AsyncMock(return_value={"text": object()}), lease=60) as service:
        record = await until(service, (await service.create(task(reruns=3))).id)
    assert (record.status, record.error) == ("failed", {"code": -32603, "message": "Internal error"})


@pytest.mark.parametrize("outcome", [{"text": "\udc80"}, ProtocolError(-5, "\udc80")])
async def test_half_of_a_character_is_replaced_in_the_outcome_of_a_task(outcome: Any) -> None:
    async with serving(mock.AsyncMock(side_effect=[outcome])) as service:
        stored = TaskRecord.load((await until(service, (await service.create(task())).id)).data)
    assert (stored.result, stored.error) in [({"text": "\ufffd"}, None), (None, {"code": -5, "message": "\ufffd"})]


async def test_a_task_without_a_handler_fails_after_its_time_to_live() -> None:
    async with serving(echo, lease=0.1) as service:
        unknown = await service.create(task(revision="2099-01-01", ttl=150))
        end = await until(service, unknown.id)
        assert (end.status, end.updated - end.created >= 150) == ("failed", True)


async def test_a_task_can_be_cancelled_while_the_queue_is_unavailable() -> None:
    runner = LocalRunner()
    vars(runner)["cancel"] = mock.AsyncMock(side_effect=OSError("queue.internal refuses"))
    async with serving(for_ever, runner=runner) as service:
        assert (await service.cancel((await service.create(task())).id, "")).status == "cancelled"


async def test_an_input_response_is_not_lost_while_the_queue_is_unavailable() -> None:
    async def handle(record: TaskRecord, running: RunningTask) -> Mapping[str, Any]:
        return await running.ask({"name": NAME})

    runner = LocalRunner()
    vars(runner)["answer_timeout"] = 0.02
    async with serving(handle, runner=runner) as service:
        made = await service.create(task(reruns=1))
        async for record in service.versions(made.id):
            if record.open and not record.runs:
                break
        await anyio.sleep(0.05)
        with mock.patch.object(runner, "submit", side_effect=OSError("queue.internal refuses")):
            await service.update(made.id, "", {"name": {"action": "accept"}})
        assert (await until(service, made.id)).status == "completed"


async def test_a_result_is_stored_although_the_server_stops_meanwhile() -> None:
    store = Failing()
    store.ends_refused = True
    async with serving(echo, store) as service:
        made = await service.create(task())
        await begun(service, made.id)
        asyncio.get_running_loop().call_later(0.1, setattr, store, "ends_refused", False)
    record = await store.read(made.id)
    assert record is not None
    assert record.status == "completed"


async def test_leases_are_renewed_while_a_sweep_runs() -> None:
    store = MemoryTaskStore()
    lease = mock.AsyncMock(wraps=store.lease)
    vars(store).update(sweep=anyio.sleep_forever, lease=lease)
    async with serving(for_ever, store, lease=0.2) as service:
        await service.create(task())
        await eventually(lambda: lease.await_count > 3)


async def test_a_superseded_run_gets_no_input_responses() -> None:
    store = MemoryTaskStore()
    service, made = service_of(for_ever, store), task(runs=2, reruns=5)
    await store.create(made, QUICK)
    late = RunningTask(service, replace(made, runs=1))
    with anyio.move_on_after(0.1):
        pytest.fail(f"it goes on with {await late.ask({'name': NAME})}")


class Listens(tasks.Client):
    """Client that counts its status notifications."""

    def __init__(self) -> None:
        super().__init__()
        self.told = 0

    def on_task_status(self, params: Any, ctx: Any) -> None:
        self.told += 1


async def test_a_new_subscription_causes_no_reads_for_existing_subscriptions() -> None:
    store, client = Failing(), Listens()
    costs: list[int] = []
    async with served(client, *one_job(anyio.sleep_forever, store, lease=60)), AsyncExitStack() as listening:
        ids = [(await client.start_tool("sleep_forever")).id for _ in range(10)]
        await anyio.sleep(0.05)
        for _ in range(5):
            before, client.told = store.reads, 0
            wanted = tasks.types.TaskSubscriptionNotifications(task_ids=ids)
            await listening.enter_async_context(client.subscribed(wanted))
            await eventually(lambda: client.told >= 10)
            costs.append(store.reads - before)
    assert costs[-1] == costs[0]


async def test_few_notifications_are_queued_for_a_client_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    queued, notify = list[str](), Subscription.notify

    async def counted(self: Subscription, method: Any, params: Any, **more: Any) -> None:
        queued.append(params.task_id)
        await notify(self, method, params, **more)

    async def unread(self: Any, method: Any, wire: Any) -> None:
        if method.name == "notifications/tasks":
            await anyio.sleep_forever()
        await send(self, method, wire)

    send: Any = getattr(Subscription, "_send")  # noqa: B009
    monkeypatch.setattr(Subscription, "notify", counted)
    monkeypatch.setattr(Subscription, "_send", unread)

    async def large() -> str:
        return "x" * 100_000

    async with served(Listens(), *one_job(large, lease=60)) as client:
        ids = [(await client.start_tool("large")).id for _ in range(10)]
        async with client.subscribed(tasks.types.TaskSubscriptionNotifications(task_ids=ids)):
            await anyio.sleep(0.2)
            assert 1 <= len(queued) <= 2


# --- clients --------------------------------------------------------------------------------------------------


async def test_a_client_waits_while_the_store_of_the_server_is_unavailable() -> None:
    store = Failing()

    async def report() -> str:
        store.reads_refused = True
        asyncio.get_running_loop().call_later(0.3, setattr, store, "reads_refused", False)
        return "done"

    async with served(tasks.Client(), *one_job(report, store)) as client:
        assert text(await client.call_tool("report")) == "done"


async def test_an_error_response_to_an_elicitation_cancels_the_task(servers: list[Server]) -> None:
    class Refuses(tasks.Client):
        def on_elicit(self, params: Any, ctx: Any) -> Any:
            raise ProtocolError(-1, "the user refused")

    async with served(Refuses(), *servers) as client:
        await refused(client.call_tool("delete", {"name": "a"}), match="the user refused")
        assert await statuses(servers[-1]) == ["cancelled"]


class Unfair(tasks.Server):
    """Server with fabricated tasks.

    Args:
        changes: Members of each `tasks/get` result that differ from a working task.
    """

    info = mcp.Implementation(name="unfair", version="1")

    def __init__(self, **changes: Any) -> None:
        super().__init__()
        self.changes, self.looks, self.cancelled = changes, 0, list[str]()

    def call_tool(self, params: mcp.CallToolRequestParams, ctx: Any) -> Any:
        return tasks.types.CreateTaskResult.model_validate({**TASK, "resultType": "task"})

    def get_task(self, params: Any, ctx: Any) -> Any:
        self.looks += 1
        return {**TASK, **self.changes, "inputRequests": {f"{self.looks}.{key}": QUESTION for key in range(100)}}

    def update_task(self, params: Any, ctx: Any) -> Any:
        return {}

    def cancel_task(self, params: Any, ctx: Any) -> Any:
        self.cancelled.append(params.task_id)
        raise ProtocolError(-32603, "it goes on")


NOW = "2026-07-28T00:00:00Z"
TASK: dict[str, Any] = {"taskId": "one", "status": "working", "createdAt": NOW, "lastUpdatedAt": NOW}
TASK |= {"ttlMs": None, "pollIntervalMs": 0}
QUESTION: Mapping[str, Any] = {
    "method": "elicitation/create",
    "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}},
}


class Patient(tasks.Client):
    def on_elicit(self, params: Any, ctx: Any) -> Any:
        return mcp.ElicitResult(action="decline")


@pytest.mark.full
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"taskId": "another", "status": "completed", "result": {"content": []}}, "another task"),
        ({"status": "input_required"}, "does not stop asking"),
    ],
)
async def test_a_client_cancels_the_task_of_a_misbehaving_server(changes: Mapping[str, Any], reason: str) -> None:
    server = Unfair(**changes)
    async with served(Patient(), server) as client:
        await refused(client.call_tool("any"), match=reason)
    assert server.cancelled == ["one"]


@pytest.mark.parametrize("suggested", [-5, 0])
async def test_a_client_enforces_a_minimum_poll_interval(suggested: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sleep, pauses = anyio.sleep, list[float]()

    async def counted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(anyio, "sleep", counted)
    server = Unfair(pollIntervalMs=suggested)
    async with served(Patient(), server) as client, anyio.create_task_group() as group:
        group.start_soon(client.call_tool, "any")
        await eventually(lambda: server.looks == 5)
        group.cancel_scope.cancel()
    assert sum(pause >= 0.02 for pause in pauses) >= 4
