"""Keep the keys of an issuer: fetched when they are needed, and kept while it does not answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from mcp_bindgen.runtime.logs import log

from .jws import PublicKey, fits, public_keys
from .verifier import VerifierUnavailable

LIFETIME = 300.0
"""Seconds after which keys are fetched again, beside the requests that use them."""

STALE = 24 * 3600.0
"""Seconds for which keys are used while their issuer does not answer."""

PAUSE = 10.0
"""Seconds between two fetches, however many tokens name keys that nobody knows."""

_PATIENCE = 20.0  # seconds for a fetch, that of the metadata included
_MOST_WAITING = 1000  # requests that wait for a fetch


class IssuerKeys:
    """The keys of an issuer.

    There is one fetch at a time, which all wait for who need it, and a pause before the next one.

    Args:
        load: Fetches the JWK Set.
        issuer: Whose they are, for the log.
        clock: Tells the time, in seconds.
    """

    def __init__(
        self, load: Callable[[], Awaitable[Any]], issuer: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._load, self._issuer, self._clock = load, issuer, clock
        self._keys: list[PublicKey] = []
        self._loaded = self._tried = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._waiting = 0

    async def find(self, id_: str | None, algorithm: str) -> PublicKey | None:
        """Return the key that a token names; without a name, the only one for its algorithm.

        Raises:
            VerifierUnavailable: No keys could be fetched, or none for a long time.
        """
        age = self._clock() - self._loaded
        if age > LIFETIME:
            fetching = self._fetch()
            if age > STALE and fetching is not None:
                await self._wait(fetching)
            if self._clock() - self._loaded > STALE:
                raise VerifierUnavailable(f"the keys of {self._issuer} could not be fetched")
        found = self._matching(id_, algorithm)
        if found is None and (fetching := self._fetch()) is not None:
            await self._wait(fetching)
            found = self._matching(id_, algorithm)
        return found

    async def _wait(self, fetching: asyncio.Task[None]) -> None:
        """Wait for a fetch, which goes on if this is cancelled."""
        if self._waiting >= _MOST_WAITING:
            raise VerifierUnavailable(f"too many wait for the keys of {self._issuer}")
        self._waiting += 1
        try:
            await asyncio.shield(fetching)
        finally:
            self._waiting -= 1

    def _matching(self, id_: str | None, algorithm: str) -> PublicKey | None:
        found = [
            one
            for one in self._keys
            if id_ in (None, one.id) and one.algorithm in (None, algorithm) and fits(one.key, algorithm)
        ]
        return found[0] if len(found) == 1 or (found and id_ is not None) else None

    def _fetch(self) -> asyncio.Task[None] | None:
        """Return the fetch that is under way; begin one if the last one is long enough ago."""
        fetching = self._fetching
        if fetching is not None and not fetching.done() and fetching.get_loop() is asyncio.get_running_loop():
            return fetching
        if self._clock() - self._tried < PAUSE:
            return None
        self._tried = self._clock()
        self._fetching = asyncio.create_task(self._refresh())
        return self._fetching

    async def _refresh(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                keys = public_keys(await self._load())
        except Exception as error:
            log.warning("the keys of %s could not be fetched: %s", self._issuer, error or type(error).__name__)
            return
        self._keys, self._loaded = keys, self._clock()
