"""Hold tasks in Redis, or in what speaks its protocol, such as Valkey: for workers on many machines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from redis.asyncio import Redis

from mcp_bindgen.cluster.storage.redis import RedisConnection
from mcp_bindgen.runtime.protocol.errors import StoreUnavailable

from ..limits import Held, TaskLimits
from ..record import TaskRecord
from . import scripts
from .base import MOST, cache_until, loaded

_PAUSE = 0.5  # seconds before changes are listened to again


class RedisTaskStore:
    """Hold tasks in Redis 7 or newer, for all workers of an endpoint. The clock of Redis decides about leases.

    What is written is as durable as Redis is told to be: `appendonly yes`, and `appendfsync always` for power cuts.
    Redis Cluster is not supported, Sentinel is: pass its client.

    Args:
        url: `redis://`, `rediss://` (TLS) or `unix://`, with user, password and number of the database; or a client.
        prefix: How all keys begin; applications that share a database have different ones.
        timeout: Seconds to wait for Redis.
        connections: The most connections.

    Raises:
        ValueError: The URL is none of Redis.
    """

    def __init__(
        self, url: str | Redis, *, prefix: str = "mcp-bindgen:tasks:", timeout: float = 2.0, connections: int = 16
    ) -> None:
        names = ("CREATE", "READ", "SWAP", "LEASE", "RELEASE", "DUE", "PAGE", "SWEEP")
        texts = {name: scripts.COMMON + str(getattr(scripts, name)) for name in names}
        self._connection = RedisConnection(url, texts, timeout=timeout, connections=connections)
        self._prefix = prefix
        self.ready = self._connection.ready

    async def _run(self, name: str, id: str, *arguments: Any) -> Any:
        return await self._connection.run(name, self._prefix, id, *arguments)

    async def create(self, record: TaskRecord, limits: TaskLimits) -> None:
        """Add a task."""
        each = (limits.open_each, limits.kept_each, limits.bytes_each)
        all_ = (limits.open, limits.kept, limits.bytes)
        full = await self._run("CREATE", record.id, _who(record.principal), record.dump(), *each, *all_)
        if full is not None:
            limits.check(Held(*full[3:]), Held(*full[:3]))

    async def read(self, id: str) -> TaskRecord | None:
        """Return a task."""
        return loaded(await self._run("READ", id))

    async def swap(self, record: TaskRecord) -> bool:
        """Replace a task by its next version."""
        state = (int(record.is_over), cache_until(record))
        return bool(await self._run("SWAP", record.id, record.version - 1, record.dump(), *state))

    async def lease(self, id: str, worker: str, seconds: float) -> bool:
        """Take the lease of a task, or renew it."""
        return bool(await self._run("LEASE", id, worker, round(seconds * 1000)))

    async def release(self, id: str, worker: str, until: int | None = 0) -> None:
        """Give up a lease."""
        await self._run("RELEASE", id, worker, "inf" if until is None else until)

    async def due(self) -> Sequence[str]:
        """Return tasks that no worker has a lease of."""
        return [id.decode(errors="replace") for id in await self._run("DUE", "", MOST)]

    async def page(self, principal: str, after: str | None = None) -> Sequence[TaskRecord]:
        """Return tasks of a principal."""
        found = await self._run("PAGE", after or "", _who(principal), MOST)
        if found is None:
            raise KeyError(after)
        return [record for data in found if data and (record := loaded(data)) is not None]

    async def sweep(self) -> int:
        """Drop tasks whose time is over."""
        return int(await self._run("SWEEP", "", MOST))

    async def watch(self) -> AsyncGenerator[str | None]:
        """Yield the ids of tasks that change, in whichever process; `None` after each time that Redis was away."""
        while True:
            heard: Any = self._connection.redis.pubsub(ignore_subscribe_messages=True)
            try:
                await self._connection.attempt(partial(heard.subscribe, f"{self._prefix}changed"))
                yield None
                while True:
                    message = await self._connection.attempt(partial(heard.get_message, timeout=1.0))
                    if message is not None:
                        yield message["data"].decode(errors="replace")
            except StoreUnavailable:
                await asyncio.sleep(_PAUSE)
            finally:
                await heard.aclose()

    async def aclose(self) -> None:
        """Give up all connections; those of a client that was given stay."""
        await self._connection.close()


def _who(principal: str) -> str:
    """Return a principal as part of keys; nobody in particular has a name, too."""
    return sha256(principal.encode()).hexdigest()[:32]
