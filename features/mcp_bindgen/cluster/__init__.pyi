from .redis_store import RedisReplayCache as RedisReplayCache
from .redis_store import RedisStore as RedisStore
