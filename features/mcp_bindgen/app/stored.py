"""Values that an app keeps for a session or a user, with a time to live."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, Literal, TypeVar, cast
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakValueDictionary

import anyio
from pydantic_core import from_json, to_json

from mcp_bindgen.http.server.event_store import EventStore, MemoryEventStore
from mcp_bindgen.runtime.protocol.errors import SessionRequired
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.session import Session

from .values import TypeForm, adapter

T = TypeVar("T")


class Stored(Generic[T]):
    """A value for each session or each user.

        cart = Stored(list[str], list)

        @app.tool
        async def add(title: str, ctx: Context) -> int:
            async with cart.edit(ctx) as titles:
                titles.append(title)
                return len(titles)

    Args:
        type: The type of the values.
        default: Makes the first value.
        per: `session` for a value of each session (each connection of stdio), `user` for a value of each user: the
            principal of the token, or all callers together without tokens.
        ttl: Seconds for which an unchanged value is kept.
        store: Where values are kept; by default in memory. `SqliteEventStore` and `RedisStore` outlive the process.
            Give each `Stored` a file, or a prefix, of its own.
    """

    def __init__(
        self,
        type: type[T],
        default: Callable[[], T],
        *,
        per: Literal["session", "user"] = "user",
        ttl: float = 3600.0,
        store: EventStore | None = None,
    ) -> None:
        kind: TypeForm = type
        self._adapter, self._default, self._per, self._ttl = adapter(kind), default, per, ttl
        self._store: EventStore = store or MemoryEventStore()
        self._connections: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def get(self, ctx: Context) -> T:
        """Return the value for the sender of a request; raise `SessionRequired` if there is no session."""
        return await self._read(self._key(ctx))

    async def set(self, ctx: Context, value: T) -> None:
        """Keep a value for the sender of a request; raise `SessionRequired` if there is no session."""
        await self._write(self._key(ctx), value)

    @asynccontextmanager
    async def edit(self, ctx: Context) -> AsyncGenerator[T]:
        """Yield the value and keep it after the block, which one task of this process enters at a time."""
        key = self._key(ctx)
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = anyio.Lock()
        async with lock:
            value = await self._read(key)
            yield value
            await self._write(key, value)

    def _key(self, ctx: Context) -> str:
        if self._per == "user":
            return f"user:{ctx.origin.principal if ctx.identity is None else ctx.identity.principal}"
        if not isinstance(ctx.link, Session):
            raise SessionRequired("Stored(per='session')")
        session = ctx.origin.headers.get("mcp-session-id")
        return f"session:{session or self._connections.setdefault(ctx.link, uuid4().hex)}"

    async def _read(self, key: str) -> T:
        found = await self._store.load(key)
        kept: dict[str, Any] = {} if found is None else from_json(found.record)
        if kept.get("until", 0) <= time.time():
            return self._default()
        return cast(T, self._adapter.validate_python(kept["value"]))

    async def _write(self, key: str, value: T) -> None:
        dumped = self._adapter.dump_python(value, mode="json")
        await self._store.save(key, to_json({"until": time.time() + self._ttl, "value": dumped}))
        await self._store.sweep((key,), self._ttl)
