"""Entry point of stores in Redis, by URL. Loads the rest when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_bindgen.runtime.lazy import require

if TYPE_CHECKING:
    from mcp_bindgen.http.server.event_store import EventStore


class RedisStores:
    """Redis databases, by TCP, TLS or a Unix socket."""

    schemes: tuple[str, ...] = ("redis", "rediss", "unix")

    def open(self, url: str) -> EventStore:
        """Return the store in a database; raises `ValueError` if the URL is malformed or redis is not installed."""
        try:
            require("a store in Redis", "redis", extra="cluster")
        except ModuleNotFoundError as error:
            raise ValueError(str(error)) from None
        from .session_registry import RedisStore

        try:
            return RedisStore(url)
        except ValueError:  # its text may hold a part of the password
            raise ValueError("the URL of the store is malformed; use redis://[USER:PASSWORD@]HOST:PORT") from None


REDIS = RedisStores()
