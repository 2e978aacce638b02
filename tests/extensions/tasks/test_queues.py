"""Task runners on existing queues: Docket on a real Redis, Procrastinate on a real PostgreSQL. About 5 seconds.

Other tests cover the engine; here a stand-in only records the ids of its tasks.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import anyio
import pytest

from mcp_bindgen.extensions.tasks import (
    DocketRunner,
    MemoryTaskStore,
    ProcrastinateRunner,
    Run,
    TaskRecord,
    TaskRunner,
    Tasks,
)
from mcp_bindgen.extensions.tasks.record import new_id, now
from mcp_bindgen.extensions.tasks.service import RunningTask
from tests.harness.checked_connections import bounded
from tests.harness.postgres_server import postgres_server
from tests.harness.redis_server import redis_server

Kind: TypeAlias = type[DocketRunner] | type[ProcrastinateRunner]


class Engine:
    """Engine that records which tasks run, and which tasks are cancelled."""

    def __init__(self, seconds: float = 0) -> None:
        self.seconds, self.ran, self.ended = seconds, list[str](), list[str]()

    async def run(self, id: str) -> None:
        self.ran.append(id)
        if id == "broken":
            raise RuntimeError("the store is away")
        try:
            await anyio.sleep(self.seconds)
        except anyio.get_cancelled_exc_class():
            self.ended.append(id)
            raise

    async def has_run(self, *ids: str) -> None:
        """Wait until exactly these tasks have begun."""
        while len(self.ran) < len(ids):
            await anyio.sleep(0.01)
        assert sorted(self.ran) == sorted(ids)


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with postgres_server() as conninfo:
        anyio.run(ProcrastinateRunner(conninfo).prepare)
        yield conninfo


@pytest.fixture(params=["docket", "procrastinate"])
def queue(request: pytest.FixtureRequest) -> tuple[Kind, str]:
    """Return the class of a runner and the address of its queue."""
    if request.param == "docket":
        return DocketRunner, request.getfixturevalue("redis").url
    return ProcrastinateRunner, request.getfixturevalue("postgres")


@asynccontextmanager
async def serving(queue: tuple[Kind, str], engine: Engine, name: str, concurrency: int) -> AsyncGenerator[TaskRunner]:
    """Run one process of the queue."""
    kind, place = queue
    runner = kind(place, name=name, concurrency=concurrency)
    async with runner.serving(engine.run):
        yield runner


@pytest.mark.full
@bounded()
async def test_a_process_without_workers_submits_tasks_to_another_process(queue: tuple[Kind, str]) -> None:
    web, worker = Engine(), Engine()
    async with serving(queue, web, "elsewhere", 0) as sender, serving(queue, worker, "elsewhere", 4):
        for id in ("one", "two", "one"):  # a task may be sent twice
            await sender.submit(id)
        await worker.has_run("one", "two", "one")
    assert web.ran == []


@pytest.mark.full
@bounded()
async def test_a_task_waits_in_the_queue_until_a_worker_runs(queue: tuple[Kind, str]) -> None:
    late = Engine()
    async with serving(queue, late, "kept", 0) as sender:
        await sender.submit("one")
    async with serving(queue, late, "kept", 1):
        await late.has_run("one")


@bounded()
async def test_a_worker_continues_after_a_failed_run(queue: tuple[Kind, str]) -> None:
    engine = Engine()
    async with serving(queue, engine, "broken", 1) as runner:
        await runner.submit("broken")
        await engine.has_run("broken")
        await runner.submit("next")
        await engine.has_run("broken", "next")


@bounded()
async def test_running_tasks_end_when_the_server_stops(queue: tuple[Kind, str]) -> None:
    engine = Engine(seconds=3600)
    async with serving(queue, engine, "ends", 4) as runner:
        for id in ("one", "two"):
            await runner.submit(id)
        await engine.has_run("one", "two")
    assert sorted(engine.ended) == ["one", "two"]


class FullQueue(TaskRunner):
    """Queue whose workers are busy."""

    def __init__(self) -> None:
        self.submitted, self.is_away = list[str](), False

    @asynccontextmanager
    async def serving(self, run: Run) -> AsyncGenerator[None]:
        yield

    async def submit(self, id: str) -> None:
        if self.is_away:
            raise ConnectionError
        self.submitted.append(id)


@bounded()
async def test_jobs_of_waiting_tasks_do_not_pile_up() -> None:
    queue, looked = FullQueue(), 0

    class Store(MemoryTaskStore):
        async def due(self) -> Sequence[str]:
            nonlocal looked
            looked += 1
            return await super().due()

    async def look(times: int) -> None:
        while looked < times:
            await anyio.sleep(0.01)

    tasks = Tasks(Store(), queue, lease=0.04)
    made: dict[str, Any] = {"id": new_id(), "created": now(), "updated": now()}
    async with tasks.serving():
        queue.is_away = True
        await tasks.create(TaskRecord(revision="2026-07-28", method="tools/call", **made))
        await look(3)
        queue.is_away = False
        await look(10)
    assert queue.submitted == [made["id"]]


@bounded()
async def test_a_task_answered_while_it_leaves_its_worker_is_due_although_its_job_is_lost() -> None:
    queue, has_left = FullQueue(), anyio.Event()
    queue.answer_timeout = 0.05

    class Store(MemoryTaskStore):
        async def release(self, id: str, worker: str, until: int | None = 0) -> None:
            await super().release(id, worker, until)
            if worker == "":
                await has_left.wait()

    async def ask(record: TaskRecord, running: RunningTask) -> dict[str, Any]:
        return await running.ask({"name": {"method": "elicitation/create"}})

    async def run() -> None:
        await tasks.run(id)
        has_left.set()

    tasks = Tasks(Store(), queue)
    tasks.handlers["2026-07-28"] = ask
    made: dict[str, Any] = {"id": (id := new_id()), "created": now(), "updated": now(), "ttl": 3600_000, "reruns": 1}
    async with tasks.serving(), anyio.create_task_group() as group:
        await tasks.create(TaskRecord(revision="2026-07-28", method="tools/call", **made))
        group.start_soon(run)
        async for record in tasks.versions(id):
            if record.open:
                break
        group.start_soon(tasks.update, id, "", {"name": "Ada"})
        async for record in tasks.versions(id):
            if record.answers:
                break
        await anyio.wait_all_tasks_blocked()
        assert await tasks.store.due() == [id]


@bounded()
async def test_tasks_wait_in_the_store_while_the_queue_is_unavailable(tmp_path: Path) -> None:
    async def handle(record: TaskRecord, running: RunningTask) -> dict[str, str]:
        return {"said": record.params["text"]}

    with redis_server(tmp_path) as redis:
        tasks = Tasks(runner=DocketRunner(redis.url), lease=0.4)
        tasks.handlers["2026-07-28"] = handle
        async with tasks.serving():
            redis.stop()
            made: dict[str, Any] = {"id": new_id(), "created": now(), "updated": now()}
            record = TaskRecord(revision="2026-07-28", method="tools/call", params={"text": "hi"}, **made)
            await tasks.create(record)
            redis.start()
            seen = [record async for record in tasks.versions(record.id)]
    assert seen[-1].result == {"said": "hi"}


@bounded()
async def test_a_worker_continues_after_a_redis_outage(tmp_path: Path) -> None:
    engine = Engine()
    with redis_server(tmp_path) as redis:
        async with serving((DocketRunner, redis.url), engine, "back", 1) as runner:
            await runner.submit("one")
            await engine.has_run("one")
            redis.stop()
            await anyio.sleep(0.2)
            redis.start()
            await runner.submit("two")
            await engine.has_run("one", "two")


@bounded()
async def test_a_worker_continues_after_postgresql_closes_its_connections(postgres: str) -> None:
    from psycopg import AsyncConnection

    engine = Engine()
    async with serving((ProcrastinateRunner, postgres), engine, "back", 1) as runner:
        await runner.submit("one")
        await engine.has_run("one")
        async with await AsyncConnection.connect(postgres) as connection:
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
        await runner.submit("two")
        await engine.has_run("one", "two")


@bounded()
async def test_a_database_without_the_tables_is_refused(postgres: str) -> None:
    conninfo = postgres.replace("dbname=postgres", "dbname=template1")
    with pytest.raises(RuntimeError, match=r"await runner\.prepare\(\)"):
        async with ProcrastinateRunner(conninfo).serving(Engine().run):
            pass


@pytest.mark.full
def test_a_negative_concurrency_is_refused() -> None:
    with pytest.raises(ValueError, match="or 0, and not -1"):
        DocketRunner("redis://localhost", concurrency=-1)
