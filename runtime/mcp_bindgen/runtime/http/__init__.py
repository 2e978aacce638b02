"""Streamable HTTP, both sides of it (MCP, "Transports": Streamable HTTP)."""

from typing import TYPE_CHECKING

from ..lazy import lazy

if TYPE_CHECKING:
    from .client.transport import http
    from .server.app import HttpApp
    from .server.event_store import EventStore, MemoryEventStore
    from .server.sqlite_store import SqliteEventStore

__all__ = ["EventStore", "HttpApp", "MemoryEventStore", "SqliteEventStore", "http"]

__getattr__ = lazy(
    __name__,
    {
        "EventStore": "server.event_store",
        "HttpApp": "server.app",
        "MemoryEventStore": "server.event_store",
        "SqliteEventStore": "server.sqlite_store",
        "http": "client.transport",
    },
)
