"""Streamable HTTP, both sides of it (MCP, "Transports": Streamable HTTP)."""

from typing import TYPE_CHECKING

from ..lazy import lazy

if TYPE_CHECKING:
    from .app import HttpApp
    from .client import http
    from .event_store import EventStore, MemoryEventStore
    from .sqlite_store import SqliteEventStore

__all__ = ["EventStore", "HttpApp", "MemoryEventStore", "SqliteEventStore", "http"]

__getattr__ = lazy(
    __name__,
    {
        "EventStore": "event_store",
        "HttpApp": "app",
        "MemoryEventStore": "event_store",
        "SqliteEventStore": "sqlite_store",
        "http": "client",
    },
)
