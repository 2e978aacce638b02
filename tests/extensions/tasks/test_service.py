"""Life cycle of a task: run, ask, cancel, interrupt, expire."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import pytest

from mcp_bindgen.extensions.tasks.record import TaskRecord, new_id, now
from mcp_bindgen.extensions.tasks.runners import LocalRunner
from mcp_bindgen.extensions.tasks.service import Handle, RunningTask, Tasks, UnknownTask
from mcp_bindgen.extensions.tasks.sqlite_store import MemoryTaskStore, SqliteTaskStore
from mcp_bindgen.extensions.tasks.store import TaskLimits, TaskStore
from mcp_bindgen.runtime.protocol.access import Identity, RequestOrigin
from mcp_bindgen.runtime.protocol.errors import INTERNAL_ERROR, ProtocolError
from tests.harness.checked_connections import refused
from tests.harness.scripted_http_server import eventually

Question = Mapping[str, Any]
NAME: Question = {"method": "elicitation/create", "params": {"message": "name?"}}
AGE: Question = {"method": "elicitation/create", "params": {"message": "age?"}}


async def echo(record: TaskRecord, running: RunningTask) -> Mapping[str, Any]:
    return {"echo": record.params}


async def for_ever(record: TaskRecord, running: RunningTask) -> Mapping[str, Any]:
    await anyio.sleep_forever()
    return {}


async def curious(record: TaskRecord, running: RunningTask) -> Mapping[str, Any]:
    found: dict[str, Any] = {}

    async def ask(key: str, question: Question) -> None:
        found.update(await running.ask({key: question}))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "name", NAME)
        tasks.start_soon(ask, "age", AGE)
    return found


def tasks(handle: Handle, store: TaskStore | None = None, *, lease: float = 0.4, **more: Any) -> Tasks:
    made = Tasks(store, lease=lease, **more)
    made.handlers["x"] = handle
    return made


def task(*, principal: str | None = None, **more: Any) -> TaskRecord:
    now = round(time.time() * 1000)
    members = {"id": new_id(), "revision": "x", "method": "tools/call", "created": now, "updated": now, "ttl": 60_000}
    return TaskRecord(origin=RequestOrigin(Identity(subject="x"), principal), **{**members, **more})


@asynccontextmanager
async def serving(handle: Handle, store: TaskStore | None = None, **more: Any) -> AsyncGenerator[Tasks]:
    """Serve tasks while the block runs."""
    service = tasks(handle, store, **more)
    async with service.serving():
        yield service


@asynccontextmanager
async def two_workers(handle: Handle, folder: Path) -> AsyncGenerator[tuple[Tasks, Tasks]]:
    """Yield two services that share a file, like two processes."""
    one, two = (SqliteTaskStore(folder / "tasks.db") for _ in range(2))
    async with aclosing(one), aclosing(two), serving(handle, one) as first, serving(handle, two) as second:
        yield first, second


async def until(service: Tasks, id: str, *statuses: str) -> TaskRecord:
    async for record in service.versions(id):
        if record.status in statuses or record.is_over:
            return record
    raise AssertionError(statuses)


async def begun(service: Tasks, id: str) -> None:
    """Wait until the handler of a task runs."""
    async for record in service.versions(id):
        if record.runs:
            return
    raise AssertionError(id)


async def asking(service: Tasks, id: str, count: int, after: str = "") -> TaskRecord:
    """Return the task when `count` questions are open and `after` is not among them."""
    async for record in service.versions(id):
        if len(record.open) == count and after not in record.open:
            return record
    raise AssertionError(count)


async def test_a_task_runs_to_its_result() -> None:
    async with serving(echo) as service:
        made = await service.create(task(params={"a": 1}, principal="ada"))
        assert (await service.read(made.id, "ada")).id == made.id
        record = await until(service, made.id)
        assert (record.status, record.result, record.runs) == ("completed", {"echo": {"a": 1}}, 1)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ProtocolError(-32602, "no", {"x": 1}), -32602),
        (ValueError("secret"), INTERNAL_ERROR),
        (SystemExit("secret"), INTERNAL_ERROR),
        (BaseExceptionGroup("secret", [SystemExit("secret")]), INTERNAL_ERROR),
    ],
)
async def test_an_error_fails_the_task_without_internal_details(error: BaseException, code: int) -> None:
    async with serving(mock.AsyncMock(side_effect=error)) as service:
        record = await until(service, (await service.create(task())).id)
    assert (record.status, record.error and record.error["code"]) == ("failed", code)
    assert "secret" not in str(record)


@pytest.mark.parametrize("garbage", [b"\xff", b"[]", b"{}"])
async def test_an_unreadable_task_is_skipped_and_logged(tmp_path: Path, garbage: bytes, caplog: Any) -> None:
    store, lost = SqliteTaskStore(tmp_path / "tasks.db"), task(principal="ada")
    await store.create(lost, TaskLimits())
    with closing(sqlite3.connect(tmp_path / "tasks.db")) as db, db:
        db.execute("update tasks set record = ?", (garbage,))
    async with serving(echo, store, lease=0.1) as service:
        await anyio.sleep(0.5)
        made = await service.create(task(principal="ada"))
        assert (await until(service, made.id)).status == "completed"
        assert [one.id for one in await service.page("ada")] == [made.id]
        await refused(service.read(lost.id, "ada"), UnknownTask)
    assert 1 <= len(caplog.records) <= 4, caplog.text  # on discovery, and for each request of its client
    assert "Traceback" not in caplog.text


async def test_tasks_run_on_after_an_unexpected_error_of_the_store(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryTaskStore):
        async def due(self) -> list[str]:
            if not caplog.records:
                raise RuntimeError("a bug")
            return list(await super().due())

    async with serving(echo, Broken()) as service:
        await eventually(lambda: caplog.records)
        made = await service.create(task())
        assert (await until(service, made.id)).status == "completed"
    assert [record.message for record in caplog.records] == ["the service of tasks failed"]


async def test_input_requests_are_open_together_and_answered_one_by_one() -> None:
    async with serving(curious) as service:
        id = (await service.create(task())).id
        assert (await asking(service, id, 2)).questions == {"name": NAME, "age": AGE}
        await service.update(id, "", {"name": "Ada", "never asked": 1})
        record = await service.read(id, "")
        assert (record.status, record.questions) == ("input_required", {"age": AGE})
        await service.update(id, "", {"name": "Eve", "age": 36})
        assert (await until(service, id, "completed")).result == {"name": "Ada", "age": 36}


async def test_a_key_never_identifies_two_input_requests() -> None:
    async def twice(record: TaskRecord, running: RunningTask) -> Mapping[str, Any]:
        first = await running.ask({"q": NAME})
        return {"answers": [first["q"], (await running.ask({"q": AGE}))["q"]]}

    async with serving(twice) as service:
        id = (await service.create(task())).id
        await until(service, id, "input_required")
        await service.update(id, "", {"q": 1})
        assert (await asking(service, id, 1, after="q")).open == ("q#2",)
        await service.update(id, "", {"q": 2, "q#2": 3})
        record = await until(service, id, "completed")
        assert record.result == {"answers": [1, 3]}
        assert record.answers == {"q": 1, "q#2": 3}


async def test_cancelling_ends_the_handler_and_the_status_is_final() -> None:
    ended: list[str] = []

    async def stubborn(record: TaskRecord, running: RunningTask) -> Mapping[str, Any]:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(record.id)
        return {}

    async with serving(stubborn) as service:
        id = (await service.create(task())).id
        await begun(service, id)
        for _ in range(2):
            assert (await service.cancel(id, "")).status == "cancelled"
        await eventually(lambda: ended)
        assert (await service.read(id, "")).status == "cancelled"


async def test_a_result_after_a_cancellation_is_discarded() -> None:
    async def shielded(record: TaskRecord, running: RunningTask) -> Mapping[str, Any]:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.2)
        return {"late": True}

    async with serving(shielded) as service:
        id = (await service.create(task())).id
        await begun(service, id)
        await service.cancel(id, "")
        await anyio.sleep(0.3)
        record = await service.read(id, "")
        assert (record.status, record.result) == ("cancelled", None)


async def test_a_task_of_another_principal_is_unknown() -> None:
    async with serving(for_ever) as service:
        id = (await service.create(task(principal="ada"))).id
        with pytest.raises(UnknownTask) as nobodys:
            await service.read(new_id(), "eve")
        asked = (service.read(id, "eve"), service.cancel(id, "eve"), service.update(id, "eve", {}))
        for ask in (*asked, service.page("eve", id)):
            assert str(await refused(ask, UnknownTask)) == str(nobodys.value)
        assert ((await service.read(id, "ada")).status, await service.page("eve")) == ("working", [])


@pytest.mark.parametrize(("reruns", "status", "runs"), [(0, "failed", 1), (1, "completed", 1)])
async def test_the_next_server_reruns_or_fails_tasks_of_a_stopped_server(reruns: int, status: str, runs: int) -> None:
    store = MemoryTaskStore()
    async with serving(for_ever, store) as service:
        id = (await service.create(task(reruns=reruns))).id
        await begun(service, id)
    async with serving(echo, store) as next_:
        record = await until(next_, id)
        assert (record.status, record.runs) == (status, runs)


@pytest.mark.parametrize(("reruns", "status"), [(0, "failed"), (1, "completed")])
async def test_a_task_of_a_dead_process_runs_again_only_if_reruns_are_allowed(
    tmp_path: Path, reruns: int, status: str
) -> None:
    store, record = SqliteTaskStore(tmp_path / "tasks.db"), task(reruns=reruns)
    await store.create(record, TaskLimits())
    leased = now()
    assert await store.lease(record.id, "the dead", 0.3)
    assert await store.swap(record.begun(record.created))
    async with aclosing(store), serving(echo, store) as service:
        end = await until(service, record.id)
        assert (end.status, end.runs) == (status, 1 + reruns)
        assert end.updated - leased >= 300  # the run ends only after the lease has expired


async def test_a_rerun_requests_only_the_input_that_is_still_missing() -> None:
    store = MemoryTaskStore()
    async with serving(curious, store) as first:
        id = (await first.create(task(reruns=1))).id
        await asking(first, id, 2)
        await first.update(id, "", {"name": "Ada"})
    async with serving(curious, store) as second:
        assert (await asking(second, id, 1)).open == ("age",)
        await second.update(id, "", {"age": 36})
        assert (await until(second, id, "completed")).result == {"name": "Ada", "age": 36}


async def test_two_workers_run_a_task_once(tmp_path: Path) -> None:
    ran: list[str] = []

    async def counts(record: TaskRecord, running: RunningTask) -> Mapping[str, Any]:
        ran.append(record.id)
        await anyio.sleep(0.01)
        return {}

    async with two_workers(counts, tmp_path) as (one, two):
        ids = [(await one.create(task())).id for _ in range(20)]
        for id in ids:
            await two.run(id)
        for id in ids:
            assert (await until(two, id)).status == "completed"
    assert sorted(ran) == sorted(ids)


async def test_an_input_response_reaches_the_worker_that_waits_for_it(tmp_path: Path) -> None:
    async with two_workers(curious, tmp_path) as (one, two):
        id = (await one.create(task())).id
        await asking(two, id, 2)
        await two.update(id, "", {"name": "Ada", "age": 36})
        assert (await until(two, id, "completed")).runs == 1
        other = (await one.create(task())).id
        await until(two, other, "input_required")
        await two.cancel(other, "")
        assert (await until(one, other)).status == "cancelled"


async def test_a_handler_that_waits_too_long_runs_again_with_the_response() -> None:
    runner = LocalRunner()
    vars(runner)["answer_timeout"] = 0.05
    async with serving(curious, runner=runner) as service:
        id = (await service.create(task(reruns=1))).id
        async for record in service.versions(id):
            if record.status == "input_required" and not record.runs:
                assert len(record.open) == 2
                break
        await service.update(id, "", {"name": "Ada", "age": 36})
        assert (await until(service, id, "completed")).result == {"name": "Ada", "age": 36}


async def test_a_task_fails_after_its_time_to_live_and_stays_readable() -> None:
    async with serving(for_ever, lease=0.1) as service:
        id = (await service.create(task(ttl=100))).id
        record = await until(service, id)
        assert record.status == "failed"
        assert "time to live" in str(record.message)
        await anyio.sleep(0.1)
        assert (await service.read(id, "")).status == "failed"


async def test_large_requests_and_input_are_refused_and_large_results_fail() -> None:
    large = mock.AsyncMock(return_value={"x": "x" * 5000})
    async with serving(large, limits=TaskLimits(max_task_bytes=2000)) as service:
        await refused(service.create(task(params={"x": "x" * 5000})), match="too large")
        record = await until(service, (await service.create(task())).id)
        assert record.status == "failed"
        assert "too large" in str(record.message)
    async with serving(curious, limits=TaskLimits(max_task_bytes=2000)) as service:
        id = (await service.create(task())).id
        await until(service, id, "input_required")
        await refused(service.update(id, "", {"name": "x" * 5000}), match="too large")
        assert (await service.read(id, "")).status == "input_required"


async def test_progress_updates_the_status_message_at_a_limited_rate() -> None:
    async def busy(record: TaskRecord, running: RunningTask) -> Mapping[str, Any]:
        for number in range(50):
            await running.report(f"step {number}")
        await anyio.sleep_forever()
        return {}

    async with serving(busy) as service:
        id = (await service.create(task())).id
        async for record in service.versions(id):
            if record.message is not None:
                break
        await anyio.sleep(0.1)
        record = await service.read(id, "")
        assert record.message == "step 0"
        assert record.version <= 4


async def test_creating_a_task_requires_a_running_service() -> None:
    await refused(tasks(echo).create(task()), RuntimeError, "lifespans")
