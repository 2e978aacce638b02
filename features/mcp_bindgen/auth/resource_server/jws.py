"""Take signed tokens apart and verify their signatures, with keys that are known already (RFC 7515, RFC 8725).

Nothing in a token says which key is trusted: it names one of ours, or it is refused.
"""

from __future__ import annotations

import re
import warnings
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey, import_key
from joserfc.jws import JWSRegistry

from mcp_bindgen.runtime.model.json_types import is_array, is_object, parse_json

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""The algorithms of signatures that are taken: all with two keys, so that who can verify cannot sign."""

_COMPACT = re.compile(rb"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)")
_UNTRUSTED = ("crit", "jku", "jwk", "x5u", "b64", "zip")
_SMALLEST_RSA, _LARGEST_RSA = 2048, 8192  # bits
_MOST_KEYS = 100


class BadSignature(Exception):
    """A signed text is not what it should be; the message says why, and holds nothing of it."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A signed text, whose signature was not looked at yet.

    Attributes:
        header: Its header.
        payload: Its payload: claims that nobody has vouched for.
        signed: The bytes that are signed.
        signature: The signature.
    """

    header: Mapping[str, Any]
    payload: Mapping[str, Any]
    signed: bytes
    signature: bytes


def take_apart(text: bytes) -> Signed | None:
    """Return the parts of a compact JWS whose header and payload are JSON objects; `None` for any other text."""
    found = _COMPACT.fullmatch(text)
    if found is None:
        return None
    try:
        header, payload = (parse_json(_decoded(part)) for part in found.group(1, 2))
        signature = _decoded(found[3])
    except ValueError:
        return None
    if not is_object(header) or not is_object(payload):
        return None
    return Signed(header, payload, text[: found.end(2)], signature)


def check_header(header: Mapping[str, Any], types: tuple[str, ...], allow: tuple[str, ...] = ()) -> None:
    """Check that a header is of the type that is expected, and does not want a key of its own to be trusted.

    Args:
        header: The header.
        types: The types that are taken, in lower case and without `application/`; an empty one for none at all.
        allow: Members that are refused elsewhere.

    Raises:
        BadSignature: It is not.
    """
    type_ = header.get("typ", "")
    if not isinstance(type_, str) or type_.lower().removeprefix("application/") not in types:
        raise BadSignature("is not of the type that is taken here")
    for name in _UNTRUSTED:
        if name in header and name not in allow:
            raise BadSignature(f"has {name!r} in its header")


def verify(signed: Signed, key: Key) -> None:
    """Verify a signature, whose algorithm was allowed and fits the key; raise `BadSignature` where it is wrong."""
    algorithm = JWSRegistry.algorithms[signed.header["alg"]]
    try:
        is_right = algorithm.verify(signed.signed, signed.signature, key)
    except (JoseError, ValueError, TypeError):
        is_right = False
    if not is_right:
        raise BadSignature("has a wrong signature")


def fits(key: Key, algorithm: str) -> bool:
    """Tell whether a key is one for an algorithm."""
    try:
        JWSRegistry.algorithms[algorithm].check_key(key)
    except JoseError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key of an issuer.

    Attributes:
        key: The key.
        id: What tokens name it by.
        algorithm: The only algorithm that it is for, if there is only one.
    """

    key: Key
    id: str | None
    algorithm: str | None


def public_keys(document: Any) -> list[PublicKey]:
    """Return the keys of a JWK Set that can verify signatures (RFC 7517); others are left out.

    Raises:
        ValueError: It is no JWK Set.
    """
    entries: Any = document.get("keys") if is_object(document) else None
    if not is_array(entries):
        raise ValueError("is no JWK Set")
    found = (_public_key(entry) for entry in entries[:_MOST_KEYS])
    return [one for one in found if one is not None]


def _public_key(entry: Any) -> PublicKey | None:
    if not is_object(entry) or entry.get("kty") not in ("RSA", "EC", "OKP") or entry.get("use", "sig") != "sig":
        return None
    operations = entry.get("key_ops")
    if is_array(operations) and "verify" not in operations:
        return None
    key = imported(entry)
    id_, algorithm = entry.get("kid"), entry.get("alg")
    if key is None or not isinstance(id_, str | None) or not isinstance(algorithm, str | None):
        return None
    return PublicKey(key, id_, algorithm)


def imported(entry: Mapping[str, Any]) -> Key | None:
    """Return a JSON Web Key that is public and strong enough; `None` for any other."""
    public = {name: entry[name] for name in ("kty", "crv", "x", "y", "n", "e") if name in entry}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SecurityWarning)  # short keys are refused below
            key = import_key(public)
            key.get_op_key("verify")
            if isinstance(key, RSAKey):
                return key if _SMALLEST_RSA <= key.raw_value.key_size <= _LARGEST_RSA else None
    except Exception:  # whatever is wrong with a key of somebody else, it is no key for us
        return None
    return key if isinstance(key, ECKey | OKPKey) else None


def _decoded(part: bytes) -> bytes:
    return urlsafe_b64decode(part + b"=" * (-len(part) % 4))
