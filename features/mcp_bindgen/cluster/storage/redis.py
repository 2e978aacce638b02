"""Ask Redis, or what speaks its protocol, such as Valkey: at once unless it is away, which is noticed and told once."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from mcp_bindgen.runtime.protocol.errors import StoreUnavailable

log = logging.getLogger("mcp_bindgen")

_PAUSE = 0.2  # seconds without another try, once Redis turned out to be away


class RedisConnection:
    """A connection to Redis, and scripts that run there as a whole.

    Args:
        url: `redis://`, `rediss://` (TLS) or `unix://`, with user, password and number of the database; or a client.
        scripts: Name -> the text of a script.
        timeout: Seconds to wait for Redis.
        connections: The most connections.

    Attributes:
        redis: The client.
        is_away: Whether Redis did not answer when it was asked last.

    Raises:
        ValueError: The URL is none of Redis.
    """

    def __init__(self, url: str | Redis, scripts: Mapping[str, str], *, timeout: float, connections: int) -> None:
        self.redis: Any = url  # untyped: half of what redis says of its types is that they are unknown
        self._is_own = isinstance(url, str)
        if isinstance(url, str):
            pool: Any = BlockingConnectionPool
            options = {
                "max_connections": connections,
                "timeout": timeout,
                "socket_timeout": timeout,
                "socket_connect_timeout": timeout,
                "retry": Retry(NoBackoff(), 1, supported_errors=(exceptions.ConnectionError,)),
                "protocol": 3,
            }
            self.redis = Redis(connection_pool=pool.from_url(url, **options))
        self.is_away = False
        self._timeout = timeout
        self._away_until = 0.0
        self._scripts = {name: self.redis.register_script(text) for name, text in scripts.items()}

    async def attempt(self, work: Callable[[], Awaitable[Any]], *, waits: bool = False) -> Any:
        """Ask Redis; raises `StoreUnavailable` while it is away, at once where that is known.

        Args:
            work: Asks it.
            waits: Whether the answer may take long although it is there.
        """
        now = time.monotonic()
        if now < self._away_until or (waits and self.is_away):
            raise StoreUnavailable()
        if self.is_away:
            self._away_until = now + self._timeout  # one asks, the others need not wait for what it finds
        try:
            async with asyncio.timeout(self._timeout + 0.5):
                answer = await _cancellable(work())
        except (exceptions.ResponseError, exceptions.OutOfMemoryError) as error:
            self._back()
            log.error("Redis refuses: %s", error)
            raise StoreUnavailable() from error
        except (exceptions.RedisError, OSError, TimeoutError) as error:
            if not self.is_away:
                log.error("Redis is away: %s: %s", type(error).__name__, error)
            self.is_away = True
            self._away_until = time.monotonic() + _PAUSE
            raise StoreUnavailable() from error
        except asyncio.CancelledError:
            self._away_until = 0.0
            raise
        self._back()
        return answer

    def _back(self) -> None:
        if self.is_away:
            log.warning("Redis is back")
        self.is_away, self._away_until = False, 0.0

    async def run(self, name: str, *arguments: Any) -> Any:
        """Run a script; raises as `attempt` does."""
        script: Any = self._scripts[name]
        return await self.attempt(lambda: script(args=arguments))

    async def insist(self, patience: float, name: str, *arguments: Any) -> Any:
        """Run a script that may be run twice; wait for so many seconds if the store is away."""
        end = time.monotonic() + patience
        while True:
            try:
                return await self.run(name, *arguments)
            except StoreUnavailable:
                if not self.is_away or time.monotonic() > end:
                    raise
            await asyncio.sleep(_PAUSE / 2)

    async def run_all(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """Run scripts in one round trip; raises as `attempt` does."""
        if not calls:
            return []
        pipe: Any = self.redis.pipeline(transaction=False)
        for name, arguments in calls:
            script: Any = self._scripts[name]
            await script(args=arguments, client=pipe)
        answers: list[Any] = await self.attempt(pipe.execute)
        return answers

    async def ready(self) -> bool:
        """Tell whether Redis answers; `/readyz` asks that."""
        return bool(await self.attempt(self.redis.ping))

    async def close(self) -> None:
        """Give up all connections; those of a client that was given stay."""
        await self.redis.aclose(close_connection_pool=self._is_own)


async def _cancellable(work: Awaitable[Any]) -> Any:
    """Await what may swallow a cancellation, as the client of Redis does while it connects."""
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    try:
        return await work
    finally:
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError
