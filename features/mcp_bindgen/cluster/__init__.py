"""Sessions, events and broadcasts that several workers share, and stores in SQLite and Redis.

Imports `http` and `runtime`. Redis needs the extra `cluster`.
"""

from typing import TYPE_CHECKING

from mcp_bindgen.runtime.lazy import lazy_modules

if TYPE_CHECKING:
    from .redis_store import RedisReplayCache as RedisReplayCache
    from .redis_store import RedisStore as RedisStore
    from .sqlite_store import SqliteEventStore as SqliteEventStore

_MODULES = {
    "redis_store": ["RedisReplayCache", "RedisStore"],
    "sqlite_store": ["SqliteEventStore"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
