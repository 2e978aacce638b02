"""Remember which proofs of possession were used, so that each counts once (RFC 9449, section 11.1)."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Protocol

from .verifier import VerifierUnavailable

_MOST_PROOFS = 200_000
_MOST_OF_KEY = 50_000  # of these by one key, so that no client shuts the others out


class ReplayCache(Protocol):
    """Remembers proofs. Processes that serve the same resource share one, or a proof counts once in each of them.

    One command of a shared store is enough, such as `SET proof 1 NX PXAT until` of Redis.
    """

    async def add(self, proof: bytes, owner: str, until: float) -> bool:
        """Remember a proof, and tell whether that is new; of several who ask at once, only one is told so.

        Args:
            proof: 32 bytes that stand for the proof: a digest of its key and its `jti`.
            owner: The thumbprint of its key, of which a client may have few or many.
            until: When it may be forgotten, in seconds since 1970: it is too old to be taken from then on.

        Raises:
            VerifierUnavailable: That cannot be told at the moment, so the request is answered with 503.
        """
        ...


class MemoryReplayCache:
    """Remembers proofs in this process, within bounds: beyond these it is unavailable until some are too old.

    Args:
        clock: Tells the time, in seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._seen: OrderedDict[bytes, tuple[str, float]] = OrderedDict()  # -> its owner, and until when it is kept
        self._of_owner: Counter[str] = Counter()

    async def add(self, proof: bytes, owner: str, until: float) -> bool:
        """Remember a proof, and tell whether that is new."""
        now = self._clock()
        while self._seen and next(iter(self._seen.values()))[1] < now:
            _, (other, _) = self._seen.popitem(last=False)
            self._of_owner[other] -= 1
            if not self._of_owner[other]:
                del self._of_owner[other]
        if proof in self._seen:
            return False
        if len(self._seen) >= _MOST_PROOFS or self._of_owner[owner] >= _MOST_OF_KEY:
            raise VerifierUnavailable("too many proofs at once")
        self._seen[proof] = owner, until
        self._of_owner[owner] += 1
        return True
