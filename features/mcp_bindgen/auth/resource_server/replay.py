"""Remember which proofs of possession were used, so that each counts once (RFC 9449, section 11.1)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

from .verifier import VerifierUnavailable

_MOST_PROOFS = 200_000
_MOST_OF_KEY = 50_000  # of these by one key; where there are too many, keys that have less than their share go on


class ReplayCache(Protocol):
    """Remembers proofs. Processes that serve the same resource share one, or a proof counts once in each of them.

    One command of a shared store is enough, such as `SET proof 1 NX PX milliseconds` of Redis: the time is relative, so
    the clock of the store does not matter.
    """

    async def add(self, proof: bytes, owner: str, seconds: float) -> bool:
        """Remember a proof, and tell whether that is new; of several who ask at once, only one is told so.

        Args:
            proof: 32 bytes that stand for the proof: a digest of its key and its `jti`.
            owner: The thumbprint of its key, of which a client may have few or many.
            seconds: How long to remember it: it is too old to be taken from then on, also by a process whose clock is
                two minutes behind.

        Raises:
            VerifierUnavailable: That cannot be told at the moment, so the request is answered with 503.
        """
        ...


class MemoryReplayCache:
    """Remembers proofs in this process, within bounds: beyond these it is unavailable until some are too old.

    Args:
        clock: Tells the time, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: set[bytes] = set()
        self._ends: list[tuple[float, bytes, str]] = []  # a heap: when a proof is forgotten, and its owner
        self._of_owner: Counter[str] = Counter()

    async def add(self, proof: bytes, owner: str, seconds: float) -> bool:
        """Remember a proof, and tell whether that is new."""
        now = self._clock()
        while self._ends and self._ends[0][0] < now:
            _, old, other = heappop(self._ends)
            self._seen.remove(old)
            self._of_owner[other] -= 1
            if not self._of_owner[other]:
                del self._of_owner[other]
        if proof in self._seen:
            return False
        own, count = self._of_owner[owner], len(self._seen)
        is_above_share = count >= _MOST_PROOFS and own >= _MOST_PROOFS / len(self._of_owner)
        if own >= _MOST_OF_KEY or is_above_share or count >= 2 * _MOST_PROOFS:
            raise VerifierUnavailable("too many proofs at once")
        self._seen.add(proof)
        heappush(self._ends, (now + seconds, proof, owner))
        self._of_owner[owner] += 1
        return True
