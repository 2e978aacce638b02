from .session_registry import RedisReplayCache as RedisReplayCache
from .session_registry import RedisStore as RedisStore
