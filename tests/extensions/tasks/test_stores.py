"""Task stores: the same contract for memory, SQLite and Redis."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing, closing
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import pytest
from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError

from mcp_bindgen.cluster import RedisStore
from mcp_bindgen.extensions.tasks.record import LINGER_MS, TaskRecord, new_id
from mcp_bindgen.extensions.tasks.redis_store import RedisTaskStore
from mcp_bindgen.extensions.tasks.sqlite_store import MemoryTaskStore, SqliteTaskStore
from mcp_bindgen.extensions.tasks.store import TaskLimits, TaskStore
from mcp_bindgen.runtime.protocol.errors import TooManyRequests
from tests.extensions.tasks.test_service import task
from tests.harness.checked_connections import refused
from tests.harness.redis_server import ANSWER_SECONDS, RedisServer

Open = Callable[[], TaskStore]
"""Opens the same stored tasks again, like another process."""

LIMITS = TaskLimits()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def again(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis")
        prefix = f"{new_id()}:"
        return lambda: RedisTaskStore(server.url, prefix=prefix, timeout=ANSWER_SECONDS)
    if request.param == "sqlite":
        return lambda: SqliteTaskStore(tmp_path / "tasks.db")
    one = MemoryTaskStore()
    return lambda: one


@pytest.fixture
def store(again: Open) -> AbstractAsyncContextManager[TaskStore]:
    return aclosing(again())


async def created(store: TaskStore, **members: Any) -> TaskRecord:
    record = task(**members)
    await store.create(record, LIMITS)
    return record


async def test_a_created_task_is_visible_to_every_process(again: Open, store: TaskStore) -> None:
    record = await created(store, params={"name": "né"}, principal="ada")
    async with aclosing(again()) as other:
        assert await other.read(record.id) == record
        assert await other.read(new_id()) is None


async def test_only_one_of_two_changes_to_the_same_version_succeeds(store: TaskStore) -> None:
    record = await created(store)
    mine, yours = record.completed(1, {"a": 1}), record.cancelled(2)
    assert ([await store.swap(mine), await store.swap(yours)], await store.read(record.id)) == ([True, False], mine)
    assert not await store.swap(task(version=2))


async def test_a_lease_has_one_owner_until_it_expires(store: TaskStore) -> None:
    record = await created(store)
    assert await store.due() == [record.id]
    assert await store.lease(record.id, "a", 0.2)
    assert await store.due() == []
    assert not await store.lease(record.id, "b", 10)
    assert await store.lease(record.id, "a", 0.05)
    await anyio.sleep(0.1)
    assert await store.due() == [record.id]
    assert await store.lease(record.id, "b", 10)
    await store.release(record.id, "a")
    assert not await store.lease(record.id, "a", 10)
    await store.release(record.id, "b")
    assert await store.due() == [record.id]


async def test_a_task_that_waits_for_its_client_is_not_due_but_may_be_leased(store: TaskStore) -> None:
    record = await created(store)
    assert await store.lease(record.id, "a", 10)
    await store.release(record.id, "a", until=None)
    assert await store.due() == []
    assert await store.lease(record.id, "b", 10)


async def test_a_finished_task_cannot_be_leased(store: TaskStore) -> None:
    record = await created(store)
    assert await store.lease(record.id, "a", 10)
    await store.swap(record.cancelled(1))
    assert not await store.lease(record.id, "a", 10)
    await store.release(record.id, "a")
    assert await store.due() == []
    assert not await store.lease(new_id(), "a", 10)


async def test_a_principal_lists_only_its_own_tasks_in_order(store: TaskStore) -> None:
    mine = [task(principal="ada") for _ in range(3)]
    for record in (*mine, task(principal="bob")):
        await store.create(record, LIMITS)
    assert [one.id for one in await store.page("ada")] == [one.id for one in mine]
    assert [one.id for one in await store.page("ada", mine[0].id)] == [one.id for one in mine[1:]]
    assert await store.page("eve") == []
    await refused(store.page("bob", mine[0].id), KeyError)


async def test_only_finished_and_expired_tasks_are_swept(store: TaskStore) -> None:
    past = round(time.time() * 1000) - LINGER_MS - 100_000
    gone, runs, late, eternal = (
        task(created=past, updated=past, ttl=ttl) for ttl in (10, 10, LINGER_MS + 99_000, None)
    )
    fresh = task(created=past, ttl=10)
    for record in (gone, runs, late, eternal, fresh):
        await store.create(record, LIMITS)
    for record in (gone, eternal, late):
        await store.swap(record.completed(past, {}))
    await store.swap(fresh.completed(round(time.time() * 1000), {}))
    assert await store.sweep() == 2  # `late` expired a second ago
    left = [await store.read(one.id) is not None for one in (gone, runs, late, eternal, fresh)]
    assert left == [False, True, False, True, True]
    assert await store.sweep() == 0


async def test_limits_apply_per_principal_and_in_total(store: TaskStore) -> None:
    few, first = TaskLimits(max_open_per_principal=2, max_open=3), task(principal="ada")
    for record in (first, task(principal="ada"), task(principal="bob")):
        await store.create(record, few)
    await refused(store.create(task(principal="ada"), few), TooManyRequests, "this client")
    await refused(store.create(task(principal="eve"), few), TooManyRequests, "this server")
    await store.swap(first.cancelled(1))
    await store.create(task(principal="ada"), few)
    mine = (TaskLimits(max_tasks_per_principal=3), TaskLimits(max_bytes_per_principal=300))
    for principal, limits in (("ada", mine), ("eve", (TaskLimits(max_tasks=4), TaskLimits(max_bytes=400)))):
        for limit in limits:
            await refused(store.create(task(principal=principal), limit), TooManyRequests)
    await store.create(task(principal="eve"), TaskLimits(max_bytes_per_principal=300))


async def test_sweeping_makes_room(store: TaskStore) -> None:
    one, record = TaskLimits(max_tasks=1, max_tasks_per_principal=1), task(created=0, updated=0, ttl=1)
    await store.create(record, one)
    await store.swap(record.cancelled(0))
    assert await store.sweep() == 1
    await store.create(task(), one)
    await refused(store.create(task(), one), TooManyRequests)


async def test_every_process_is_notified_of_changes(again: Open, store: TaskStore) -> None:
    record = await created(store)

    async def change() -> None:
        latest = record
        while True:  # the first changes may come before the other process watches
            latest = latest.reported(1, f"{latest.version}")
            await store.swap(latest)
            await anyio.sleep(0.05)

    async with aclosing(again()) as other, aclosing(other.watch()) as changes, anyio.create_task_group() as tasks:
        tasks.start_soon(change)
        async for id in changes:
            if id == record.id:
                break
        tasks.cancel_scope.cancel()


async def test_unreadable_task_ids_stop_no_worker(redis: RedisServer) -> None:
    async with aclosing(RedisTaskStore(redis.url, prefix="garbage:")) as store:
        redis.client.zadd("garbage:open", {b"\xff": 0, b"good": 0})
        assert "good" in await store.due()
        async with aclosing(store.watch()) as changes:
            assert await anext(changes) is None
            redis.client.publish("garbage:changed", b"\xff")
            redis.client.publish("garbage:changed", b"good")
            assert [await anext(changes), await anext(changes)] == ["\ufffd", "good"]


async def test_a_change_whose_response_is_lost_is_made_once(redis: RedisServer) -> None:
    """The client of Redis sends a command again if the connection breaks off before its response."""
    cuts, read = list[str](), AbstractConnection.read_response

    async def read_response(connection: AbstractConnection, *arguments: Any, **options: Any) -> Any:
        response = await read(connection, *arguments, **options)
        if not cuts:
            return response
        cuts.clear()
        await connection.disconnect()
        raise ConnectionError("cut")

    few, record = TaskLimits(max_open=2), task()
    async with aclosing(RedisTaskStore(redis.url, prefix="twice:", timeout=ANSWER_SECONDS)) as store:
        await store.create(task(), few)
        assert not await store.swap(task(version=2))  # now Redis knows both scripts
        begun = record.begun(record.created)
        with mock.patch.object(AbstractConnection, "read_response", read_response):
            cuts.append("create")
            await store.create(record, few)
            cuts.append("begin")
            assert await store.swap(begun)
        assert not cuts
        await store.swap(begun.cancelled(1))
        await store.create(task(), few)


async def test_a_quiet_store_is_not_taken_for_unavailable(redis: RedisServer) -> None:
    waits = list[float]()

    async def get_message(pubsub: PubSub, *, timeout: float) -> Any:
        waits.append(timeout)
        return {"data": b"x"}

    async with aclosing(RedisTaskStore(redis.url, timeout=0.5)) as store, aclosing(store.watch()) as changes:
        with mock.patch.object(PubSub, "get_message", get_message):
            assert [await anext(changes), await anext(changes)] == [None, "x"]
    assert waits[0] < 0.5


def test_a_client_that_decodes_responses_is_refused(redis: RedisServer) -> None:
    for kind in (RedisTaskStore, RedisStore):
        with pytest.raises(ValueError, match="decode_responses=False"):
            kind(Redis.from_url(redis.url, decode_responses=True))


def test_a_file_that_is_no_task_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("create table mine (x)")
    for content in (path.read_bytes(), b"no database at all" * 100):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is not a task store"):
            SqliteTaskStore(path)


def test_a_store_file_is_accessible_only_to_its_owner(tmp_path: Path) -> None:
    anyio.run(SqliteTaskStore(tmp_path / "tasks.db").aclose)
    assert (tmp_path / "tasks.db").stat().st_mode & 0o077 == 0
