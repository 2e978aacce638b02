"""Verify the proofs by which a client shows that a token was issued to it (RFC 9449, DPoP)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from joserfc.jwk import Key

from mcp_bindgen.runtime.model.json_types import is_object

from ..dpop import TYPE, target, token_hash
from .jws import BadSignature, check_header, fits, imported, take_apart, verify
from .replay import MemoryReplayCache, ReplayCache

ALGORITHMS = ("ES256", "ES384", "EdDSA", "Ed25519")
"""The algorithms of proofs. A client brings its own key, so those are left out whose keys can be made slow to use."""

WINDOW = 300.0
"""Seconds by which the time of a proof may differ from ours."""

_LONGEST = 8192  # bytes of a proof
_MOST_KEYS = 1000
_SKEW = 120.0  # seconds that a proof is remembered for beyond its end: each of two clocks may be a minute off
_SECRET = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


class InvalidProof(Exception):
    """A proof does not show what it should; the message says why."""


class NonceWanted(InvalidProof):
    """A proof lacks the nonce of this server, or has an old one."""


@dataclass(frozen=True)
class Nonces:
    """The nonces that a server wants to see in proofs, so that none can be made in advance.

    Attributes:
        key: A secret of at least 16 bytes. Processes that serve the same clients share it.
        lifetime: Seconds after which another one is wanted; the one before is still taken.
        clock: Tells the time, in seconds.
    """

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    lifetime: float = 300.0
    clock: Callable[[], float] = field(default=time.time, repr=False)

    def __post_init__(self) -> None:
        if len(self.key) < 16:
            raise ValueError("nonces need a key of at least 16 bytes")

    def current(self) -> str:
        """Return the nonce that is wanted now."""
        return self._nonce(self._slot())

    def is_good(self, nonce: Any) -> bool:
        """Tell whether a nonce is the one that is wanted, or the one before."""
        if not isinstance(nonce, str) or not nonce.isascii():
            return False
        return any(hmac.compare_digest(nonce, self._nonce(self._slot() - age)) for age in (0, 1))

    def _slot(self) -> int:
        return int(self.clock() // self.lifetime)

    def _nonce(self, slot: int) -> str:
        return urlsafe_b64encode(hmac.digest(self.key, b"%d" % slot, "sha256")[:18]).decode()


class ProofVerifier:
    """Verify proofs, each of which counts once.

    Args:
        nonces: The nonces that proofs must have, if they must.
        window: Seconds by which the time of a proof may differ from ours.
        clock: Tells the time, in seconds since 1970.
        replay: Remembers which were used; by default in this process.
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
        self._keys: OrderedDict[tuple[Any, ...], Key] = OrderedDict()

    async def verify(self, proof: bytes, method: str, urls: Collection[str], token: str, thumbprint: str) -> None:
        """Verify the proof of one request (RFC 9449, section 4.3).

        Args:
            proof: The value of its header `DPoP`.
            method: Its method of HTTP.
            urls: The URLs that it may have been sent to, as `dpop.target` writes them.
            token: The access token that came along.
            thumbprint: The key that the token is bound to.

        Raises:
            InvalidProof: The proof is not one for this.
            NonceWanted: It is, but for a nonce.
            VerifierUnavailable: Nobody can tell at the moment whether it was used before.
        """
        signed = take_apart(proof) if len(proof) <= _LONGEST else None
        if signed is None:
            raise InvalidProof("there is not one proof, but none or several")
        algorithm, jwk = signed.header.get("alg"), signed.header.get("jwk")
        try:
            check_header(signed.header, (TYPE,), allow=("jwk",))
        except BadSignature as error:
            raise InvalidProof(f"the proof {error}") from None
        if algorithm not in ALGORITHMS or not is_object(jwk) or _SECRET & jwk.keys():
            raise InvalidProof("the proof has no public key, or an algorithm that is not taken here")
        key = self._key(jwk)
        if key is None or not fits(key, algorithm):
            raise InvalidProof("the key of the proof is no key for its algorithm")
        try:
            verify(signed, key)
        except BadSignature as error:
            raise InvalidProof(f"the proof {error}") from None
        if not hmac.compare_digest(key.thumbprint(), thumbprint):
            raise InvalidProof("the token is bound to another key")
        claims = signed.payload
        if claims.get("htm") != method or _target(claims.get("htu")) not in urls:
            raise InvalidProof("the proof is for another request")
        ath: Any = claims.get("ath")
        if not isinstance(ath, str) or not ath.isascii() or not hmac.compare_digest(ath, token_hash(token)):
            raise InvalidProof("the proof is for another token")
        issued: Any = claims.get("iat")
        if isinstance(issued, bool) or not isinstance(issued, int | float):
            raise InvalidProof("the proof does not say when it was made")
        now = self._clock()
        if not now - self._window <= issued <= now + self._window:
            raise InvalidProof("the proof was made at another time")
        if self._nonces is not None and not self._nonces.is_good(claims.get("nonce")):
            raise NonceWanted("the proof lacks the nonce of this server")
        await self._count(claims.get("jti"), thumbprint, issued + self._window - now + _SKEW)

    async def _count(self, id_: Any, thumbprint: str, seconds: float) -> None:
        """Note for some seconds that a proof was seen; raise `InvalidProof` if it was before."""
        if not isinstance(id_, str) or not id_:
            raise InvalidProof("the proof has no jti")
        digest = hashlib.sha256(f"{thumbprint} {id_}".encode("utf-8", "surrogatepass")).digest()
        if not await self._replay.add(digest, thumbprint, seconds):
            raise InvalidProof("the proof was used before")

    def _key(self, jwk: dict[str, Any]) -> Key | None:
        """Return a key, which is often the same as before."""
        name = tuple(jwk.get(member) for member in ("kty", "crv", "x", "y"))
        if not all(isinstance(one, str | None) for one in name):
            return None
        found = self._keys.get(name) or imported(jwk)
        if found is not None:
            self._keys[name] = found
            self._keys.move_to_end(name)
            if len(self._keys) > _MOST_KEYS:
                self._keys.popitem(last=False)
        return found


def _target(url: Any) -> str | None:
    try:
        return target(url) if isinstance(url, str) else None
    except ValueError:
        return None
