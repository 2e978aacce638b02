"""Task store in Redis or a compatible server such as Valkey, for workers on many machines.

Each operation is one Lua script in `scripts`, which Redis runs atomically. Arguments: the prefix of
all keys, the task id, and the arguments of the script. A task is a hash: `r` the record, `v` its version, `w` the
principal, `o` the worker that has the lease. `open` and `over` are sorted sets of ids, scored by the end of the lease
and by the time from which the record is removable. `n:` holds the usage of a principal or of all, `l:` the tasks of a
principal in the order of creation.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from mcp_bindgen.cluster.redis_connection import RedisConnection, read_scripts
from mcp_bindgen.runtime.protocol.errors import StoreUnavailable

from .record import TaskRecord
from .store import PAGE_SIZE, TaskLimits, Usage, load

_RETRY_SECONDS = 0.5


class RedisTaskStore:
    """Task store in Redis 7 or newer, for all workers of an endpoint. The clock of Redis decides about leases.

    The store is as durable as Redis: use `appendonly yes`, and `appendfsync always` against power failures. Redis
    Cluster is not supported; for Sentinel pass its client.

    Args:
        url: URL with the scheme `redis`, `rediss` (TLS) or `unix`, with credentials and database; or a client.
        prefix: Prefix of all keys; applications that share a database need different ones.
        timeout: Seconds to wait for Redis.
        connections: Maximum number of connections.

    Raises:
        ValueError: The URL is not a Redis URL, or the client decodes responses.
    """

    def __init__(
        self, url: str | Redis, *, prefix: str = "mcp-bindgen:tasks:", timeout: float = 2.0, connections: int = 16
    ) -> None:
        scripts = read_scripts(Path(__file__).with_name("scripts"), {})
        self._connection = RedisConnection(url, scripts, timeout=timeout, connections=connections)
        self._prefix, self._wait = prefix, min(timeout / 2, 1.0)
        self.ready: Callable[[], Awaitable[bool]] = self._connection.ready

    async def _run(self, name: str, id: str, *arguments: str | bytes | float) -> Any:
        return await self._connection.run(name, self._prefix, id, *arguments)

    async def create(self, record: TaskRecord, limits: TaskLimits) -> None:
        """Add a task."""
        own = (limits.max_open_per_principal, limits.max_tasks_per_principal, limits.max_bytes_per_principal)
        total = (limits.max_open, limits.max_tasks, limits.max_bytes)
        full = await self._run("create", record.id, _hashed(record.principal), record.data, *own, *total)
        if full is not None:
            limits.check(Usage(*full[1]), Usage(*full[0]))

    async def read(self, id: str) -> TaskRecord | None:
        """Return a task."""
        return load(await self._connection.attempt(partial(self._connection.redis.hget, f"{self._prefix}t:{id}", "r")))

    async def swap(self, record: TaskRecord) -> bool:
        """Replace the previous version of a task."""
        state = (int(record.is_over), record.removable_at)
        return bool(await self._run("swap", record.id, record.version - 1, record.data, *state))

    async def lease(self, id: str, worker: str, seconds: float) -> bool:
        """Take or renew the lease of a task."""
        return bool(await self._run("lease", id, worker, round(seconds * 1000)))

    async def release(self, id: str, worker: str, until: int | None = 0) -> None:
        """End the lease of a worker."""
        await self._run("release", id, worker, "inf" if until is None else until)

    async def due(self) -> Sequence[str]:
        """Return ids of tasks that need a worker."""
        return [id.decode(errors="replace") for id in await self._run("due", "", PAGE_SIZE)]

    async def page(self, principal: str, after: str | None = None) -> Sequence[TaskRecord]:
        """Return tasks of a principal."""
        found = await self._run("page", after or "", _hashed(principal), PAGE_SIZE)
        if found is None:
            raise KeyError(after)
        return [record for data in found if (record := load(data)) is not None]

    async def sweep(self) -> int:
        """Remove tasks."""
        return int(await self._run("sweep", "", PAGE_SIZE))

    async def watch(self) -> AsyncGenerator[str | None]:
        """Yield the ids of tasks that change in any process; `None` after each new connection to Redis."""
        while True:
            channel: Any = self._connection.redis.pubsub(ignore_subscribe_messages=True)
            try:
                await self._connection.attempt(partial(channel.subscribe, f"{self._prefix}changed"))
                yield None
                while True:
                    message = await self._connection.attempt(partial(channel.get_message, timeout=self._wait))
                    if message is not None:
                        yield message["data"].decode(errors="replace")
            except StoreUnavailable:
                await asyncio.sleep(_RETRY_SECONDS)
            finally:
                await channel.aclose()

    async def aclose(self) -> None:
        """Close all connections, except for a client that the caller gave."""
        await self._connection.close()


def _hashed(principal: str) -> str:
    """Return a principal as part of a key."""
    return sha256(principal.encode()).hexdigest()[:32]
