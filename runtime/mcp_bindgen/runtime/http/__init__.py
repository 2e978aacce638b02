"""Streamable HTTP, both sides of it (MCP, "Transports": Streamable HTTP)."""

from typing import TYPE_CHECKING

from ..core.lazy import lazy_modules

if TYPE_CHECKING:
    from .client.transport import http as http
    from .server.app import HttpApp as HttpApp
    from .server.event_store.base import EventStore as EventStore, MemoryEventStore as MemoryEventStore
    from .server.event_store.sqlite import SqliteEventStore as SqliteEventStore

_MODULES = {
    "client.transport": ["http"],
    "server.app": ["HttpApp"],
    "server.event_store.base": ["EventStore", "MemoryEventStore"],
    "server.event_store.sqlite": ["SqliteEventStore"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
