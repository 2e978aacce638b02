"""Connection to Redis, or to a server that speaks its protocol, such as Valkey."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.protocol.errors import StoreUnavailable

Argument: TypeAlias = str | bytes | int | float
"""Argument of a script."""

_STEPS = 10  # parts of a time limit
_PAUSE = 0.2  # seconds without another attempt after Redis did not answer


def read_scripts(folder: Path, constants: Mapping[str, int]) -> dict[str, str]:
    """Return the Lua scripts in a folder by file name; each begins with the constants and with `common.lua`."""
    common = (folder / "common.lua").read_text("utf-8")
    head = "".join(f"local {name} = {value}\n" for name, value in constants.items()) + common
    return {file.stem: head + file.read_text("utf-8") for file in folder.glob("*.lua") if file.stem != "common"}


class RedisConnection:
    """Connection to Redis that runs scripts, and fails at once while Redis is known to be unavailable.

    Args:
        url: `redis://`, `rediss://` (TLS) or `unix://`, with user, password and number of the database; or a client.
        scripts: Texts of the Lua scripts by name.
        timeout: Seconds to wait for Redis.
        connections: Maximum number of connections.

    Attributes:
        redis: The client.
        is_away: True if Redis did not answer the last request.

    Raises:
        ValueError: The URL has another scheme, or the client decodes responses.
    """

    def __init__(self, url: str | Redis, scripts: Mapping[str, str], *, timeout: float, connections: int) -> None:
        self.redis: Any = url  # untyped: redis annotates half of its parameters and results as unknown
        self._is_own = isinstance(url, str)
        if isinstance(url, str):
            pool: Any = BlockingConnectionPool
            options = {
                "max_connections": connections,
                "timeout": None,  # `attempt` limits the time
                "socket_timeout": None,
                "socket_connect_timeout": None,
                "retry": Retry(NoBackoff(), 1, supported_errors=(exceptions.ConnectionError,)),
                "protocol": 3,
            }
            self.redis = Redis(connection_pool=pool.from_url(url, **options))
        if self.redis.get_connection_kwargs().get("decode_responses"):
            raise ValueError("this client decodes responses; pass one with decode_responses=False")
        self.is_away: bool = False
        self._timeout = timeout
        self._away_until = 0.0
        self._scripts: dict[str, Any] = {name: self.redis.register_script(text) for name, text in scripts.items()}

    async def attempt(self, work: Callable[[], Awaitable[Any]], *, waits: bool = False) -> Any:
        """Return the answer of Redis.

        Args:
            work: Sends the command.
            waits: True if the answer may take long although Redis is available.

        Raises:
            StoreUnavailable: Redis refuses the command, or is unavailable; at once if that is known.
        """
        now = time.monotonic()
        if now < self._away_until or (waits and self.is_away):
            raise StoreUnavailable
        if self.is_away:
            self._away_until = now + self._timeout  # one request tries; the rest fail until it has an answer
        try:
            async with _time_limit(self._timeout):
                answer = await _cancellable(work())
        except (exceptions.ResponseError, exceptions.OutOfMemoryError) as error:
            self._note_answer()
            log.error("Redis refuses: %s", error)
            raise StoreUnavailable from error
        except (exceptions.RedisError, OSError, TimeoutError) as error:
            if not self.is_away:
                reason = str(error) or f"no answer within {self._timeout:g} s"
                log.error("Redis is away: %s: %s", type(error).__name__, reason)
            self.is_away = True
            self._away_until = time.monotonic() + _PAUSE
            raise StoreUnavailable from error
        except asyncio.CancelledError:
            self._away_until = 0.0
            raise
        self._note_answer()
        return answer

    def _note_answer(self) -> None:
        if self.is_away:
            log.warning("Redis is back")
        self.is_away, self._away_until = False, 0.0

    async def run(self, name: str, *arguments: Argument, patience: float = 0.0) -> Any:
        """Run a script.

        Args:
            name: Name of the script.
            arguments: Its arguments.
            patience: Seconds to repeat the script while Redis is unavailable; only for scripts that may run twice.

        Raises:
            StoreUnavailable: See `attempt`.
        """
        end = time.monotonic() + patience
        while True:
            try:
                return await self.attempt(lambda: self._scripts[name](args=arguments))
            except StoreUnavailable:
                if not self.is_away or time.monotonic() >= end:
                    raise
            await asyncio.sleep(_PAUSE / 2)

    async def run_all(self, name: str, calls: Iterable[tuple[Argument, ...]]) -> list[Any]:
        """Run a script with each of several lists of arguments, in one round trip; raises as `attempt` does."""
        async with self.redis.pipeline(transaction=False) as pipe:  # it returns its connection, also when cancelled
            for arguments in calls:
                await self._scripts[name](args=arguments, client=pipe)
            answers: list[Any] = await self.attempt(pipe.execute) if len(pipe) else []
            return answers

    async def ready(self) -> bool:
        """Return True if Redis answers; `/readyz` reports the result."""
        return bool(await self.attempt(self.redis.ping))

    async def close(self) -> None:
        """Close all connections except those of a client that the caller passed."""
        with suppress(TimeoutError):
            async with _time_limit(self._timeout):
                await self.redis.aclose(close_connection_pool=self._is_own)


@asynccontextmanager
async def _time_limit(seconds: float) -> AsyncGenerator[None]:
    """Raise `TimeoutError` after some seconds, counted in steps: a blocked event loop costs one step at most.

    After an import or a handler has blocked the event loop, answers that have arrived must be read before they count
    as missing.
    """
    loop, left = asyncio.get_running_loop(), _STEPS
    timer = loop.call_later(seconds / _STEPS, lambda: count())

    def count() -> None:
        nonlocal left, timer
        left -= 1
        if left:
            timer = loop.call_later(seconds / _STEPS, count)
        else:
            limit.reschedule(loop.time())

    async with asyncio.timeout(None) as limit:
        try:
            yield
        finally:
            timer.cancel()


async def _cancellable(work: Awaitable[Any]) -> Any:
    """Await a call that may swallow a cancellation, as the client of Redis does while it connects."""
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    try:
        return await work
    finally:
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError
