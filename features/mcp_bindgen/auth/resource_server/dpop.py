"""Verification of proofs of possession, each of which counts once (RFC 9449, DPoP)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import heappop, heappush
from typing import Protocol

from joserfc.jwk import Key

from mcp_bindgen.runtime.model.json_types import is_object

from ..dpop import TYPE, token_hash
from ..metadata import target_uri
from .signatures import BadSignature, check_header, fits, import_public_key, parse_signed, verify
from .verifier import InvalidProof, NonceWanted, VerifierUnavailable

ALGORITHMS = ("ES256", "ES384", "EdDSA", "Ed25519")
"""Algorithms of proofs. A client chooses its key, so algorithms whose keys can be made slow are left out."""

WINDOW = 300.0
"""Seconds by which the time of a proof may differ from ours."""

_MAX_PROOF_BYTES = 8192
_MAX_CACHED_KEYS = 1000
_CLOCK_SKEW = 120.0  # seconds of cache time beyond the end of a proof: each of two clocks may be a minute off
_MAX_PROOFS = 200_000
_MAX_PROOFS_OF_KEY = 50_000
_MEMBERS = ("kty", "crv", "x", "y")
_SECRET_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


@dataclass(frozen=True)
class Nonces:
    """Nonces of a server for proofs, so that no proof can be made in advance.

    Attributes:
        key: A secret of at least 16 bytes. Processes that serve the same clients share it.
        lifetime: Seconds after which a new nonce is required; the previous nonce is still accepted.
        clock: Returns the time in seconds.

    Raises:
        ValueError: The key is shorter than 16 bytes.
    """

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    lifetime: float = 300.0
    clock: Callable[[], float] = field(default=time.time, repr=False)

    def __post_init__(self) -> None:
        if len(self.key) < 16:
            raise ValueError("nonces need a key of at least 16 bytes")

    def current(self) -> str:
        """Return the required nonce."""
        return self._nonce(0)

    def is_good(self, nonce: object) -> bool:
        """Return True for the current nonce and the previous nonce."""
        if not isinstance(nonce, str) or not nonce.isascii():
            return False
        return any(hmac.compare_digest(nonce, self._nonce(age)) for age in (0, 1))

    def _nonce(self, age: int) -> str:
        slot = int(self.clock() // self.lifetime) - age
        return urlsafe_b64encode(hmac.digest(self.key, b"%d" % slot, "sha256")[:18]).decode()


# --- replay ---------------------------------------------------------------------------------------------------


class ReplayCache(Protocol):
    """Cache of used proofs (RFC 9449, section 11.1). Processes that serve the same resource share one.

    One command of a shared store is enough, such as `SET proof 1 NX PX milliseconds` of Redis: the time is relative, so
    the clock of the store does not matter.
    """

    async def add(self, proof: bytes, owner: str, seconds: float) -> bool:
        """Add a proof; return True if it is new, for only one of several concurrent callers.

        Args:
            proof: Digest of the proof's key and `jti`, 32 bytes.
            owner: Thumbprint of the key. A client may have several.
            seconds: Cache time: the proof is expired afterwards, also for a process whose clock is two minutes behind.

        Raises:
            VerifierUnavailable, StoreUnavailable: The cache does not answer, so the response is 503.
        """
        ...


class MemoryReplayCache:
    """Cache of used proofs in this process, 200,000 in all and 50,000 of one key.

    When it is full, it is unavailable until proofs expire. Keys with less than an equal share may still add proofs, up
    to twice as many.

    Args:
        clock: Returns the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: set[bytes] = set()
        self._ends: list[tuple[float, bytes, str]] = []  # a heap: end, proof, owner
        self._of_owner: Counter[str] = Counter()

    async def add(self, proof: bytes, owner: str, seconds: float) -> bool:
        """Add a proof; return True if it is new.

        Raises:
            VerifierUnavailable: The cache is full.
        """
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
        # in a full cache, keys with less than their share may still add proofs
        is_above_share = count >= _MAX_PROOFS and own >= _MAX_PROOFS / len(self._of_owner)
        if own >= _MAX_PROOFS_OF_KEY or is_above_share or count >= 2 * _MAX_PROOFS:
            raise VerifierUnavailable("too many proofs at once")
        self._seen.add(proof)
        heappush(self._ends, (now + seconds, proof, owner))
        self._of_owner[owner] += 1
        return True


# --- proofs ---------------------------------------------------------------------------------------------------


class ProofVerifier:
    """Verifier of proofs.

    Args:
        nonces: Nonces that proofs must have, if any.
        window: Seconds by which the time of a proof may differ from ours.
        clock: Returns the time in seconds since 1970.
        replay: Cache of used proofs; by default in this process.
    """

    def __init__(
        self,
        nonces: Nonces | None = None,
        window: float = WINDOW,
        clock: Callable[[], float] = time.time,
        replay: ReplayCache | None = None,
    ) -> None:
        self._nonces, self._window, self._clock = nonces, window, clock
        self._replay = replay or MemoryReplayCache(clock)

    async def verify(self, proof: bytes, method: str, urls: Collection[str], token: str, thumbprint: str) -> None:
        """Verify the proof of one request (RFC 9449, section 4.3).

        Args:
            proof: Value of the header `DPoP`.
            method: HTTP method.
            urls: Accepted URLs of the request, as `dpop.target_uri` writes them.
            token: Access token of the request.
            thumbprint: Thumbprint of the key that the token is bound to.

        Raises:
            InvalidProof: The proof is not for this request.
            NonceWanted: The proof lacks the nonce.
            VerifierUnavailable, StoreUnavailable: The cache of used proofs does not answer.
        """
        signed = parse_signed(proof) if len(proof) <= _MAX_PROOF_BYTES else None
        if signed is None:
            raise InvalidProof("the request does not have exactly one proof")
        algorithm, jwk = signed.header.get("alg"), signed.header.get("jwk")
        try:
            check_header(signed.header, (TYPE,), allow=("jwk",))
            if algorithm not in ALGORITHMS or not is_object(jwk) or _SECRET_MEMBERS & jwk.keys():
                raise BadSignature("has no public key, or an algorithm that is not accepted here")
            members = [jwk.get(name) for name in _MEMBERS]
            key = _public_key(*members) if all(isinstance(one, str | None) for one in members) else None
            if key is None or not fits(key, algorithm):
                raise BadSignature("has a key that does not fit its algorithm")
            verify(signed, key)
        except BadSignature as error:
            raise InvalidProof(f"the proof {error}") from None
        if not hmac.compare_digest(key.thumbprint(), thumbprint):
            raise InvalidProof("the token is bound to another key")
        claims = signed.payload
        if claims.get("htm") != method or _target(claims.get("htu")) not in urls:
            raise InvalidProof("the proof is for another request")
        ath: object = claims.get("ath")
        if not isinstance(ath, str) or not ath.isascii() or not hmac.compare_digest(ath, token_hash(token)):
            raise InvalidProof("the proof is for another token")
        issued: object = claims.get("iat")
        if isinstance(issued, bool) or not isinstance(issued, int | float):
            raise InvalidProof("the proof does not say when it was made")
        now = self._clock()
        if not now - self._window <= issued <= now + self._window:
            raise InvalidProof("the proof was made at another time")
        if self._nonces is not None and not self._nonces.is_good(claims.get("nonce")):
            raise NonceWanted("the proof lacks the nonce of this server")
        id_: object = claims.get("jti")
        if not isinstance(id_, str) or not id_:
            raise InvalidProof("the proof has no jti")
        digest = hashlib.sha256(f"{thumbprint} {id_}".encode("utf-8", "surrogatepass")).digest()
        if not await self._replay.add(digest, thumbprint, issued + self._window - now + _CLOCK_SKEW):
            raise InvalidProof("the proof was used before")


@lru_cache(_MAX_CACHED_KEYS)
def _public_key(*values: str | None) -> Key | None:
    return import_public_key({name: value for name, value in zip(_MEMBERS, values, strict=True) if value is not None})


def _target(url: object) -> str | None:
    try:
        return target_uri(url) if isinstance(url, str) else None
    except ValueError:
        return None
