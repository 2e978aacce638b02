"""Shared store of an endpoint in Redis, and a replay cache for proofs of possession in the same place."""

from __future__ import annotations

from mcp_bindgen.http.server.access import GuardedService
from mcp_bindgen.http.server.limits import HttpLimits

from .session_registry import SharedRegistry
from .store import SharedStore


class RedisStore(SharedStore):
    """Shared store that `HttpApp(store=...)` takes; see `SharedStore` for its options."""

    def registry(self, service: GuardedService, limits: HttpLimits) -> SharedRegistry:
        """Return the registry of the sessions that the workers share."""
        return SharedRegistry(service, self, limits)


class RedisReplayCache:
    """Cache of proofs of possession in Redis for all workers: `ResourceServer(replay=RedisReplayCache(store))`.

    Args:
        store: Store of the sessions.
    """

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def add(self, proof: bytes, owner: str, seconds: float) -> bool:
        """Store a proof; return False if it was seen before.

        Raises:
            StoreUnavailable: Redis cannot answer, or the owner has too many proofs.
        """
        return await self._store.claim(proof.hex(), owner, seconds)
