"""Proofs of possession that clients send (RFC 9449, DPoP): keys, proofs, and the values that both sides compare."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from typing import Any, Self
from uuid import uuid4

from joserfc import jwt
from joserfc.jwk import ECKey

from .metadata import target_uri

TYPE = "dpop+jwt"
"""`typ` in the header of a proof."""

ALGORITHM = "ES256"
"""Algorithm of our proofs; every implementation should know it (RFC 7518, section 3.1: recommended+)."""

HEADER = "DPoP"
"""Header of a request that carries a proof, and the scheme of tokens that need one."""

NONCE = "dpop-nonce"
"""Header of a response that names the nonce for the next proof."""


class ProofKey:
    """Private key of a client; neither `repr` nor errors show it.

    Args:
        key: The key.

    Attributes:
        thumbprint: SHA-256 thumbprint of the key (RFC 7638): `cnf.jkt` of a bound token.
        public: Public half as a JSON Web Key.
    """

    def __init__(self, key: ECKey) -> None:
        self._key = key
        self.thumbprint: str = key.thumbprint()
        self.public: dict[str, Any] = dict(key.as_dict(private=False))

    def __repr__(self) -> str:
        return f"ProofKey(thumbprint={self.thumbprint!r})"

    @classmethod
    def generate(cls) -> Self:
        """Make a new key."""
        return cls(ECKey.generate_key("P-256"))

    @classmethod
    def load(cls, text: str) -> Self:
        """Read the result of `dump`.

        Raises:
            ValueError: The text is no key.
        """
        try:
            return cls(ECKey.import_key(json.loads(text)))
        except Exception:
            raise ValueError("the text is not a key for proofs") from None

    def dump(self) -> str:
        """Return the private key as text, for a store of secrets."""
        return json.dumps(self._key.as_dict(private=True))

    def prove(self, method: str, url: str, *, token: str | None = None, nonce: str | None = None) -> str:
        """Return a proof for one request (RFC 9449, section 4.2).

        Args:
            method: HTTP method.
            url: URL of the request.
            token: Access token in the same request.
            nonce: Nonce that the server has requested.
        """
        claims: dict[str, Any] = {"jti": uuid4().hex, "htm": method, "htu": target_uri(url), "iat": int(time.time())}
        if token is not None:
            claims["ath"] = token_hash(token)
        if nonce is not None:
            claims["nonce"] = nonce
        header = {"typ": TYPE, "alg": ALGORITHM, "jwk": self.public}
        return jwt.encode(header, claims, self._key, algorithms=[ALGORITHM])


def token_hash(token: str) -> str:
    """Return the hash of an access token in a proof, the claim `ath`."""
    return base64.urlsafe_b64encode(hashlib.sha256(token.encode("ascii")).digest()).rstrip(b"=").decode()
