"""Prove the possession of a key (RFC 9449, DPoP): keys, their thumbprints, and the proofs that clients send."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from joserfc import jwt
from joserfc.jwk import ECKey, import_key

TYPE = "dpop+jwt"
"""What the header of a proof says it is."""

ALGORITHM = "ES256"
"""What our proofs are signed with; every implementation must know it (RFC 7518, section 3.1: recommended+)."""

HEADER = "DPoP"
"""The header that carries a proof, and the scheme of tokens that need one."""

NONCE = "dpop-nonce"
"""The header in which a server names the nonce that it wants next."""

_PORTS = {"http": 80, "https": 443}


class ProofKey:
    """A private key of a client, and what it proves; neither `repr` nor errors show it.

    Args:
        key: The key.

    Attributes:
        thumbprint: Identifies the key: what a bound token states in `cnf.jkt`.
        public: Its public half as a JSON Web Key.
    """

    def __init__(self, key: ECKey) -> None:
        self._key = key
        self.thumbprint = key.thumbprint()
        self.public: dict[str, Any] = dict(key.as_dict(private=False))

    def __repr__(self) -> str:
        return f"ProofKey(thumbprint={self.thumbprint!r})"

    @classmethod
    def generate(cls) -> Self:
        """Make a new key."""
        return cls(ECKey.generate_key("P-256"))

    @classmethod
    def load(cls, text: str) -> Self:
        """Read what `dump` wrote.

        Raises:
            ValueError: It is something else.
        """
        try:
            return cls(ECKey.import_key(json.loads(text)))
        except Exception:
            raise ValueError("not a key that was kept for proofs") from None

    def dump(self) -> str:
        """Return the private key as text, to be kept where secrets are."""
        return json.dumps(self._key.as_dict(private=True))

    def prove(self, method: str, url: str, *, token: str | None = None, nonce: str | None = None) -> str:
        """Return a proof for one request (RFC 9449, section 4.2).

        Args:
            method: The method of HTTP.
            url: Where the request goes.
            token: The access token that goes along, if one does.
            nonce: What the server wants to see in it.
        """
        claims: dict[str, Any] = {"jti": uuid4().hex, "htm": method, "htu": target(url), "iat": int(time.time())}
        if token is not None:
            claims["ath"] = token_hash(token)
        if nonce is not None:
            claims["nonce"] = nonce
        header = {"typ": TYPE, "alg": ALGORITHM, "jwk": self.public}
        return jwt.encode(header, claims, self._key, algorithms=[ALGORITHM])


def thumbprint(key: Mapping[str, Any]) -> str:
    """Return the SHA-256 thumbprint of a JSON Web Key (RFC 7638).

    Raises:
        joserfc.errors.JoseError: It is no key.
    """
    return import_key(dict(key)).thumbprint()


def token_hash(token: str) -> str:
    """Return the hash by which a proof names an access token, its claim `ath`."""
    return base64.urlsafe_b64encode(hashlib.sha256(token.encode("ascii")).digest()).rstrip(b"=").decode()


def target(url: str) -> str:
    """Return a URL as proofs name it, in `htu`: normalised, without query and fragment (RFC 9449, section 4.3).

    Raises:
        ValueError: It is no URL.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    scheme = parts.scheme.lower()
    port = "" if parts.port in (None, _PORTS.get(scheme)) else f":{parts.port}"
    return urlunsplit((scheme, f"{host}{port}", parts.path or "/", "", ""))
