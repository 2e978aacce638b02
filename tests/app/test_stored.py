"""Concurrent edits of `Stored` values that processes share in Redis: no edit is lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from mcp_bindgen.app import Stored, ToolError
from mcp_bindgen.app import stored as module
from mcp_bindgen.cluster.session_registry import RedisStore
from tests.harness.redis_server import ANSWER_SECONDS, RedisServer

ADA: Any = SimpleNamespace(identity=SimpleNamespace(principal="ada"))


@asynccontextmanager
async def two_processes(redis: RedisServer, prefix: str) -> AsyncGenerator[list[Stored[list[int]]]]:
    """Yield the same value as two processes see it."""
    stores = [RedisStore(redis.url, prefix=prefix, timeout=ANSWER_SECONDS) for _ in range(2)]
    yield [Stored(list[int], list, store=store) for store in stores]
    for store in stores:
        await store.resign()


async def test_edits_of_two_processes_wait_for_each_other(redis: RedisServer) -> None:
    async with two_processes(redis, "edits:") as values, anyio.create_task_group() as tasks:

        async def add(number: int) -> None:
            async with values[number % 2].edit(ADA) as numbers:
                before = list(numbers)
                await anyio.sleep(0.001)
                numbers[:] = [*before, number]

        for number in range(20):
            tasks.start_soon(add, number)
    async with two_processes(redis, "edits:") as (value, _):
        assert sorted(await value.get(ADA)) == list(range(20))
    assert [key for key in redis.client.hkeys("edits:s:user:ada") if key.startswith(b"w:")] == [b"w:0"]


async def test_edits_in_one_process_wait_for_each_other() -> None:
    value = Stored(list[int], list)

    async def add(number: int) -> None:
        async with value.edit(ADA) as numbers:
            numbers.append(number)
            await anyio.sleep(0.001)

    async with anyio.create_task_group() as tasks:
        for number in range(9):
            tasks.start_soon(add, number)
    assert sorted(await value.get(ADA)) == list(range(9))


async def test_a_failed_edit_releases_the_lock_and_keeps_the_old_value(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_EDIT_SECONDS", 3600.0)  # so the next edit can begin only when the first one ends
    async with two_processes(redis, "errors:") as (one, other):
        await one.set(ADA, [1])
        with pytest.raises(ZeroDivisionError):
            async with one.edit(ADA) as numbers:
                numbers.append(1 // 0)
        async with other.edit(ADA) as numbers:
            assert numbers == [1]


async def test_an_edit_of_a_value_that_changed_meanwhile_is_refused(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_processes(redis, "late:") as (one, other):
        monkeypatch.setattr(module, "_EDIT_SECONDS", 0.0)
        with pytest.raises(ToolError, match="changed by another call; call again"):  # noqa: PT012
            async with one.edit(ADA) as numbers:
                numbers.append(1)
                async with other.edit(ADA) as others:
                    others.append(2)
        assert await one.get(ADA) == [2]
