"""Identify a client to an authorization server, and authenticate it there (OAuth 2.1, section 2.4; RFC 7523)."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlsplit
from uuid import uuid4

from joserfc import jwt
from joserfc.jwk import import_key

from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from ..metadata import ServerMetadata

PrivateKey = str | bytes | Mapping[str, Any]
"""A private key: PEM, or a JSON Web Key."""

ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

_LIFETIME = 120  # seconds that an assertion is valid
_ALGORITHMS = {"RSA": "RS256", "OKP": "Ed25519"}
_CURVES = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}


@dataclass(frozen=True)
class Credentials:
    """Prove in a request who a client is.

    Attributes:
        form: Fields of the form.
        headers: Headers.
        secret: What the headers hold in another form, and nobody else should see.
    """

    form: Mapping[str, str] = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    secret: str = field(default="", repr=False)


@dataclass(frozen=True)
class KnownClient:
    """A client that an authorization server knows, without a secret.

    Attributes:
        id: Its identifier there.
        issuer: The authorization server that knows it; by default the one that the server names.
        redirect_uri: Where users come back to, if the authorization server knows only some.
    """

    id: str
    issuer: str | None = None
    redirect_uri: str | None = None

    def credentials(self, server: ServerMetadata) -> Credentials:
        """Return what proves to an authorization server who the client is.

        Raises:
            AuthorizationError: It knows no way that this client has.
        """
        return Credentials({"client_id": self.id} if self.id else {})


@dataclass(frozen=True)
class ClientSecret(KnownClient):
    """A client that has a secret.

    Attributes:
        secret: The secret.
        method: `client_secret_basic` or `client_secret_post`; by default the first that the server knows.
    """

    secret: str = field(default="", repr=False)
    method: str | None = None

    def credentials(self, server: ServerMetadata) -> Credentials:
        """Return the secret in the way that the server knows."""
        methods = [self.method] if self.method else ["client_secret_basic", "client_secret_post"]
        method = next((one for one in methods if self.method or one in server.auth_methods), None)
        if method == "client_secret_basic":
            pair = f"{quote_plus(self.id)}:{quote_plus(self.secret)}".encode("ascii")
            return Credentials({}, {"authorization": f"Basic {base64.b64encode(pair).decode()}"}, self.secret)
        if method == "client_secret_post":
            return Credentials({"client_id": self.id, "client_secret": self.secret})
        raise AuthorizationError(f"{server.issuer} does not let clients authenticate with a secret")


def assertion(
    client_id: str, audience: str, key: PrivateKey, algorithm: str | None = None, key_id: str | None = None
) -> str:
    """Return a fresh assertion of who a client is (RFC 7523, section 3).

    Args:
        client_id: The client.
        audience: Whom it is for: the issuer of the authorization server.
        key: The private key.
        algorithm: What to sign with; by default what fits the key.
        key_id: The identifier of the key, if the authorization server knows several.

    Raises:
        AuthorizationError: The key cannot sign.
    """
    now = int(time.time())
    claims = {"iss": client_id, "sub": client_id, "aud": audience, "iat": now, "exp": now + _LIFETIME}
    try:
        found = import_key(dict(key)) if isinstance(key, Mapping) else _from_pem(key)
        algorithm = algorithm or _CURVES.get(str(found.get("crv"))) or _ALGORITHMS[found.key_type]
        header = {"alg": algorithm, **({"kid": key_id} if key_id else {})}
        return jwt.encode(header, {**claims, "jti": uuid4().hex}, found, algorithms=[algorithm])
    except Exception as error:
        problem = type(error).__name__
        raise AuthorizationError(f"the private key of client {client_id} cannot sign: {problem}") from None


def _from_pem(text: str | bytes) -> Any:
    """Return the key in a PEM text, whatever kind it is."""
    failure: Exception | None = None
    for kind in ("EC", "RSA", "OKP"):
        try:
            return import_key(text, kind)
        except Exception as error:
            failure = error
    raise failure or ValueError("no key")


def is_document_url(url: str) -> bool:
    """Tell whether a URL can identify a client by its metadata document: https, with a path, and nothing hidden."""
    parts = urlsplit(url)
    segments = parts.path.split("/")
    plain = not (parts.fragment or "@" in parts.netloc or "." in segments or ".." in segments)
    return parts.scheme == "https" and bool(parts.hostname) and len(parts.path) > 1 and plain
