"""Streamable HTTP and HTTP+SSE, both sides (MCP, "Transports"). Imports `endpoint`, `eras` and `core`."""

from typing import TYPE_CHECKING

from ..core.lazy import lazy_modules

if TYPE_CHECKING:
    from .client.transport import http as http
    from .server.app import HttpApp as HttpApp
    from .server.event_store.base import EventStore as EventStore, StoreLimits as StoreLimits
    from .server.event_store.memory import MemoryEventStore as MemoryEventStore
    from .server.event_store.sqlite import SqliteEventStore as SqliteEventStore
    from .server.limits import HttpLimits as HttpLimits

_MODULES = {
    "client.transport": ["http"],
    "server.app": ["HttpApp"],
    "server.event_store.base": ["EventStore", "StoreLimits"],
    "server.event_store.memory": ["MemoryEventStore"],
    "server.event_store.sqlite": ["SqliteEventStore"],
    "server.limits": ["HttpLimits"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
