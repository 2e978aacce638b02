"""Values that an app keeps for a session or a user, with a time to live."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, Literal, Protocol, TypeVar, cast, runtime_checkable
from uuid import uuid4
from weakref import WeakKeyDictionary, WeakValueDictionary

import anyio
from pydantic_core import from_json, to_json

from mcp_bindgen.http.server.event_store import EventStore, MemoryEventStore
from mcp_bindgen.runtime.protocol.errors import SessionRequired
from mcp_bindgen.runtime.session.context import Context
from mcp_bindgen.runtime.session.session import Session

from .errors import ToolError
from .validation import adapter
from .values import TypeForm

T = TypeVar("T")

_NONE = b"{}"  # a record without a value
_EDIT_SECONDS = 30.0
_POLL_SECONDS = 0.02
_RELEASE_SECONDS = 2.0


@runtime_checkable
class VersionedStore(Protocol):
    """Part of `RedisStore` that keeps processes from overwriting changes of each other."""

    async def create(self, session: str, idle: float, principal: str | None = None) -> int:
        """Create a session, unless it exists."""
        ...

    async def refresh(self, session: str, version: int) -> Any:
        """Return `version` and `record` of a session; None if there is no such session."""

    async def update(self, session: str, record: bytes, version: int, *, ready: bool = False) -> Any:
        """Store a record if the version is unchanged, else return `version` and `record` of the stored one."""


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
        store: Where values are kept; by default in memory. `SqliteEventStore` and `RedisStore` outlive the process,
            and processes share a `RedisStore`. Give each `Stored` a file, or a prefix, of its own.
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
        self._shared = store if isinstance(store, VersionedStore) else None
        self._connections: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def get(self, ctx: Context) -> T:
        """Return the value for the sender of a request; raise `SessionRequired` if there is no session."""
        return self._value(await self._load(self._key(ctx)))

    async def set(self, ctx: Context, value: T) -> None:
        """Keep a value for the sender of a request; raise `SessionRequired` if there is no session."""
        await self._save(self._key(ctx), self._record(value))

    @asynccontextmanager
    async def edit(self, ctx: Context) -> AsyncGenerator[T]:
        """Yield the value and keep it after the block, which one task at a time enters, of all processes.

        Processes share values in a `RedisStore` only. Another process enters a block that takes longer than 30 seconds.

        Raises:
            SessionRequired: There is no session.
            ToolError: Another process changed the value during the block, because the block took too long, or with
                `set`. The value of the block is not kept.
        """
        key = self._key(ctx)
        async with self._locks.setdefault(key, anyio.Lock()):
            if self._shared is None:
                value = self._value(await self._load(key))
                yield value
                await self._save(key, self._record(value))
                return
            version, before = await self._begin(self._shared, key)
            after, found = before, None
            try:
                value = self._value(before)
                yield value
                after = self._record(value)
            finally:  # an error in the block ends the edit, too
                with anyio.move_on_after(_RELEASE_SECONDS, shield=True):
                    found = await self._shared.update(key, after, version)
            if found is None or found.record is not None:
                raise ToolError("the stored value was changed by another call; call again")

    async def _begin(self, store: VersionedStore, key: str) -> tuple[int, bytes]:
        """Mark a value as being edited, once no other process edits it; return the version and the record before."""
        while True:
            found = await store.refresh(key, -1)
            if found is None:
                await store.create(key, self._ttl, key)
                continue
            kept: dict[str, Any] = from_json(found.record or _NONE)
            if kept.pop("edited_until", 0) <= time.time():
                marked = to_json({**kept, "edited_until": time.time() + _EDIT_SECONDS})
                taken = await store.update(key, marked, found.version, ready=True)
                if taken is not None and taken.record is None:
                    return taken.version, to_json(kept)
            await anyio.sleep(_POLL_SECONDS)

    def _key(self, ctx: Context) -> str:
        if self._per == "user":
            return f"user:{ctx.origin.principal if ctx.identity is None else ctx.identity.principal}"
        if not isinstance(ctx.link, Session):
            raise SessionRequired("Stored(per='session')")
        session = ctx.origin.headers.get("mcp-session-id")
        return f"session:{session or self._connections.setdefault(ctx.link, uuid4().hex)}"

    async def _load(self, key: str) -> bytes:
        shared = self._shared  # `load` would begin a worker epoch in it
        found = await (self._store.load(key) if shared is None else shared.refresh(key, -1))
        return _NONE if found is None else found.record or _NONE

    async def _save(self, key: str, record: bytes) -> None:
        await self._store.save(key, record, key)
        await self._store.sweep((key,), self._ttl)

    def _value(self, record: bytes) -> T:
        """Return the value in a record, or the first value."""
        kept: dict[str, Any] = from_json(record)
        if kept.get("until", 0) <= time.time():
            return self._default()
        return cast(T, self._adapter.validate_python(kept["value"], by_alias=True, by_name=True))

    def _record(self, value: T) -> bytes:
        dumped = self._adapter.dump_python(value, mode="json", by_alias=True)
        return to_json({"until": time.time() + self._ttl, "value": dumped})
