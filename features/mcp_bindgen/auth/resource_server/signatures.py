"""Signatures of tokens, and the keys of their issuers (RFC 7515, RFC 7517, RFC 8725).

A token names one of the keys that its issuer publishes; a key inside a token is never trusted.
"""

from __future__ import annotations

import asyncio
import re
import time
import warnings
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey, import_key
from joserfc.jws import JWSRegistry

from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.model.json_types import is_array, is_object, parse_json

from .verifier import VerifierUnavailable

ALGORITHMS = (*("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"))
"""Algorithms of signatures, all with two keys: a verifier cannot sign."""

LIFETIME = 300.0
"""Seconds after which keys are fetched again in the background."""

STALE = 24 * 3600.0
"""Seconds for which keys are used while their issuer does not answer."""

PAUSE = 10.0
"""Seconds between two fetches, however many tokens name unknown keys."""

_COMPACT = re.compile(rb"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")
_FETCH_TIMEOUT = 20.0  # seconds, with the fetch of the metadata
_MAX_WAITING = 1000  # requests that wait for a fetch
_MAX_KEYS = 100
_UNTRUSTED = ("crit", "jku", "jwk", "x5u", "b64", "zip")
_MIN_RSA_BITS, _MAX_RSA_BITS = 2048, 8192


class BadSignature(Exception):
    """A signed text is invalid; the message says why, and shows nothing of the text."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed text, whose signature is not verified yet.

    Attributes:
        header: Its header.
        payload: Its payload, not to be trusted yet.
        signed: The bytes that are signed.
        signature: The signature.
    """

    header: Mapping[str, Any]
    payload: Mapping[str, Any]
    signed: bytes
    signature: bytes


def parse_signed(text: bytes) -> Signed | None:
    """Return the parts of a compact JWS whose header and payload are JSON objects; `None` for any other text."""
    found = _COMPACT.fullmatch(text)
    if found is None:
        return None
    with suppress(ValueError):
        header, payload, signature = (urlsafe_b64decode(part + b"=" * (-len(part) % 4)) for part in found.groups())
        members, claims = parse_json(header), parse_json(payload)
        if is_object(members) and is_object(claims):
            return Signed(members, claims, text[: found.end(2)], signature)
    return None


def check_header(header: Mapping[str, Any], types: tuple[str, ...], allow: tuple[str, ...] = ()) -> None:
    """Check the type in a header, and that the header brings no key or extension of its own.

    Args:
        header: The header.
        types: Accepted types, in lower case and without `application/`; an empty one for none.
        allow: Members that are allowed although other tokens must not have them.

    Raises:
        BadSignature: The header is not acceptable.
    """
    type_ = header.get("typ", "")
    if not isinstance(type_, str) or type_.lower().removeprefix("application/") not in types:
        raise BadSignature("has a type that is not accepted here")
    for name in _UNTRUSTED:
        if name in header and name not in allow:
            raise BadSignature(f"has {name!r} in its header")


def verify(signed: Signed, *keys: Key) -> None:
    """Verify a signature by an allowed algorithm with one of some keys that fit it; raise `BadSignature` otherwise."""
    algorithm = JWSRegistry.algorithms[signed.header["alg"]]
    for key in keys:
        with suppress(JoseError, ValueError, TypeError):
            if algorithm.verify(signed.signed, signed.signature, key):
                return
    raise BadSignature("has a wrong signature")


def fits(key: Key, algorithm: str) -> bool:
    """Return True if a key is for an algorithm."""
    try:
        JWSRegistry.algorithms[algorithm].check_key(key)
    except JoseError:
        return False
    return True


# --- keys -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key of an issuer.

    Attributes:
        key: The key.
        id: Its `kid`.
        algorithm: The only algorithm of the key, if it names one.
    """

    key: Key
    id: str | None
    algorithm: str | None


def import_public_key(entry: Mapping[str, Any]) -> Key | None:
    """Return the public part of a JSON Web Key; `None` for invalid, symmetric and weak keys."""
    public = {name: entry[name] for name in ("kty", "crv", "x", "y", "n", "e") if name in entry}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SecurityWarning)  # short keys are refused below
            key = import_key(public)
            key.get_op_key("verify")
            if isinstance(key, RSAKey):
                return key if _MIN_RSA_BITS <= key.raw_value.key_size <= _MAX_RSA_BITS else None
    except Exception:  # joserfc and cryptography raise many types for invalid keys
        return None
    return key if isinstance(key, ECKey | OKPKey) else None


def public_keys(document: object) -> list[PublicKey]:
    """Return the keys of a JWK Set that can verify signatures (RFC 7517); raise `ValueError` if it is none."""
    entries = document.get("keys") if is_object(document) else None
    if not is_array(entries):
        raise ValueError("the document is no JWK Set")
    found: list[PublicKey] = []
    for entry in entries[:_MAX_KEYS]:
        if not is_object(entry) or entry.get("use", "sig") != "sig":
            continue
        operations = entry.get("key_ops")
        if is_array(operations) and "verify" not in operations:
            continue
        key, id_, algorithm = import_public_key(entry), entry.get("kid"), entry.get("alg")
        if key is not None and isinstance(id_, str | None) and isinstance(algorithm, str | None):
            found.append(PublicKey(key, id_, algorithm))
    return found


class IssuerKeys:
    """Keys of an issuer, with one fetch at a time and a pause between two fetches.

    Args:
        load: Fetches the JWK Set.
        issuer: The issuer, for the log.
        clock: Returns the time in seconds.
    """

    def __init__(
        self, load: Callable[[], Awaitable[object]], issuer: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._load, self._issuer, self._clock = load, issuer, clock
        self._keys: list[PublicKey] = []
        self._loaded = self._tried = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._waiting = 0

    async def find(self, id_: str | None, algorithm: str) -> list[PublicKey]:
        """Return the keys for an algorithm with an identifier; without identifier, the only key for the algorithm.

        Raises:
            VerifierUnavailable: The keys could not be fetched for a day.
        """
        age = self._clock() - self._loaded
        if age > LIFETIME:
            await self._fetch(is_needed=age > STALE)
            if self._clock() - self._loaded > STALE:
                raise VerifierUnavailable(f"the keys of {self._issuer} could not be fetched")
        found = self._matching(id_, algorithm)
        if not found:
            await self._fetch()
            found = self._matching(id_, algorithm)
        return found

    def _matching(self, id_: str | None, algorithm: str) -> list[PublicKey]:
        named = [one for one in self._keys if id_ in (None, one.id)]
        found = [one for one in named if one.algorithm in (None, algorithm) and fits(one.key, algorithm)]
        return found if len(found) == 1 or id_ is not None else []

    async def _fetch(self, *, is_needed: bool = True) -> None:
        """Join the current fetch, or begin one after the pause; wait for it if it is needed."""
        fetching = self._fetching
        if fetching is None or fetching.done() or fetching.get_loop() is not asyncio.get_running_loop():
            if self._clock() - self._tried < PAUSE:
                return
            self._tried = self._clock()
            fetching = self._fetching = asyncio.create_task(self._refresh())
        if not is_needed:
            return
        if self._waiting >= _MAX_WAITING:
            raise VerifierUnavailable(f"too many requests wait for the keys of {self._issuer}")
        self._waiting += 1
        try:
            await asyncio.shield(fetching)  # the fetch goes on if this request is cancelled
        finally:
            self._waiting -= 1

    async def _refresh(self) -> None:
        try:
            with anyio.fail_after(_FETCH_TIMEOUT):
                keys = public_keys(await self._load())
        except Exception as error:
            log.warning("the keys of %s could not be fetched: %s", self._issuer, error or type(error).__name__)
            return
        self._keys, self._loaded = keys, self._clock()
