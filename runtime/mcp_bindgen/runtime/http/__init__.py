"""Streamable HTTP and HTTP+SSE, both sides (MCP, "Transports"). Imports `endpoint`, `eras` and `core`."""

from typing import TYPE_CHECKING

from ..core.lazy import lazy

if TYPE_CHECKING:
    from .client.transport import http
    from .server.app import HttpApp
    from .server.event_store.base import EventStore, MemoryEventStore
    from .server.event_store.sqlite import SqliteEventStore

__all__ = ["EventStore", "HttpApp", "MemoryEventStore", "SqliteEventStore", "http"]

__getattr__ = lazy(
    __name__,
    {
        "EventStore": "server.event_store.base",
        "HttpApp": "server.app",
        "MemoryEventStore": "server.event_store.base",
        "SqliteEventStore": "server.event_store.sqlite",
        "http": "client.transport",
    },
)
