"""Streamable HTTP and HTTP+SSE, for servers and clients (MCP, "Transports"). Imports `runtime`."""

from typing import TYPE_CHECKING

from mcp_bindgen.runtime.lazy import lazy_modules

if TYPE_CHECKING:
    from .client.legacy_sse import sse as sse
    from .client.transport import http as http
    from .server.app import HttpApp as HttpApp
    from .server.event_store.base import EventStore as EventStore
    from .server.event_store.base import StoreLimits as StoreLimits
    from .server.event_store.memory import MemoryEventStore as MemoryEventStore
    from .server.legacy_sse import SseApp as SseApp
    from .server.limits import HttpLimits as HttpLimits
    from .server.serve import serve_http as serve_http
    from .server.serve import serve_sse as serve_sse

_MODULES = {
    "client.legacy_sse": ["sse"],
    "client.transport": ["http"],
    "server.app": ["HttpApp"],
    "server.event_store.base": ["EventStore", "StoreLimits"],
    "server.event_store.memory": ["MemoryEventStore"],
    "server.legacy_sse": ["SseApp"],
    "server.limits": ["HttpLimits"],
    "server.serve": ["serve_http", "serve_sse"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
