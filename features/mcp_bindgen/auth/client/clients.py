"""Clients of an authorization server: identifiers, secrets and dynamic registration.

MCP 2026-07-28, "Client Registration"; OAuth 2.1, section 2.4; RFC 7591.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from mcp_bindgen.runtime.logs import harmless
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from ..challenges import basic_credentials
from ..fetch import Fetched, Fetcher, is_loopback
from ..metadata import ServerMetadata

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"

_MAX_TIME = 1e15  # seconds since 1970
_MAX_REASON_CHARACTERS = 200
_PREFERRED = ("none", "client_secret_basic", "client_secret_post")


@dataclass(frozen=True)
class Credentials:
    """Parts of a request that authenticate a client.

    Attributes:
        form: Fields of the form.
        headers: Headers.
        secret: Secret that the headers hold in another encoding.
    """

    form: Mapping[str, str] = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    secret: str = field(default="", repr=False)


@dataclass(frozen=True)
class KnownClient:
    """A client that is registered with an authorization server and has no secret.

    Attributes:
        id: Its `client_id`.
        issuer: The authorization server; by default the server that the resource names.
        redirect_uri: The registered redirect URI, if there is only one.
    """

    id: str
    issuer: str | None = None
    redirect_uri: str | None = None

    def credentials(self, server: ServerMetadata) -> Credentials:
        """Return the parts of a request that authenticate the client.

        Raises:
            AuthorizationError: The server supports no method of this client.
        """
        return Credentials({"client_id": self.id} if self.id else {})


@dataclass(frozen=True)
class ClientSecret(KnownClient):
    """A client with a secret.

    Attributes:
        secret: The secret.
        method: `client_secret_basic` or `client_secret_post`; by default the first that the server supports.
    """

    secret: str = field(default="", repr=False)
    method: str | None = None

    def credentials(self, server: ServerMetadata) -> Credentials:
        """Return the secret in the form or in a header.

        Raises:
            AuthorizationError: The server accepts secrets in neither way.
        """
        methods = [self.method] if self.method else ["client_secret_basic", "client_secret_post"]
        method = next((one for one in methods if self.method or one in server.auth_methods), None)
        if method == "client_secret_basic":
            return Credentials({}, {"authorization": basic_credentials(self.id, self.secret)}, self.secret)
        if method == "client_secret_post":
            return Credentials({"client_id": self.id, "client_secret": self.secret})
        raise AuthorizationError(f"{server.issuer} does not let clients authenticate with a secret")


def is_document_url(url: str) -> bool:
    """Return True if a URL can identify a client by its metadata document: https, with a path, without user or dots."""
    parts = urlsplit(url)
    segments = parts.path.split("/")
    is_plain = not (parts.fragment or "@" in parts.netloc or "." in segments or ".." in segments)
    return parts.scheme == "https" and bool(parts.hostname) and len(parts.path) > 1 and is_plain


def client_metadata(url: str, name: str, redirect_uris: list[str]) -> dict[str, Any]:
    """Return the metadata document of a client, to be published at `url`.

    Args:
        url: Its https URL with a path; it becomes the `client_id`.
        name: Name of the client for users.
        redirect_uris: Redirect URIs of the client.
    """
    return {
        "client_id": url,
        "client_name": name,
        "redirect_uris": redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }


async def register(
    fetcher: Fetcher, endpoint: str, server: ServerMetadata, name: str, redirect_uri: str | None
) -> dict[str, Any]:
    """Register a client (RFC 7591) and return the record for the store; see `load_client`.

    The request names no scopes: some servers would restrict the client to them.

    Args:
        fetcher: Sends the request.
        endpoint: The registration endpoint.
        server: The authorization server.
        name: Name of the client for users.
        redirect_uri: Redirect URI; `None` for logins on another device.

    Raises:
        AuthorizationError: The server rejects the registration, or its response cannot be used.
    """
    host = urlsplit(redirect_uri or "").hostname or ""
    method = next((one for one in _PREFERRED if one in server.auth_methods), None)
    if method is None:
        raise AuthorizationError(f"{server.issuer} registers no clients that authenticate with a secret or not at all")
    wanted = {
        "client_name": name,
        "application_type": "native" if redirect_uri is None or is_loopback(host) else "web",
        "grant_types": ["authorization_code" if redirect_uri else DEVICE_GRANT, "refresh_token"],
        "token_endpoint_auth_method": method,
        "redirect_uris": [redirect_uri] if redirect_uri else [],
        "response_types": ["code"] if redirect_uri else [],
    }
    return read_registration(server, await fetcher.post_json(endpoint, wanted), redirect_uri, method)


def read_registration(
    server: ServerMetadata, response: Fetched, redirect_uri: str | None, method: str
) -> dict[str, Any]:
    """Return the record of a registration for the store (RFC 7591, section 3.2); see `load_client`.

    Args:
        server: The authorization server.
        response: Its response.
        redirect_uri: Requested redirect URI.
        method: Requested way to authenticate.

    Raises:
        AuthorizationError: The server rejects the registration, or the response cannot be used.
    """
    document = response.object
    if not response.is_success or document is None:
        reason = error_text(document or {})
        problem = f"{server.issuer} does not register this client ({response.status}{f', {reason}' if reason else ''})"
        fix = "register it there yourself and name it: OAuth(client=KnownClient(id))"
        raise AuthorizationError(f"{problem}; {fix}", is_temporary=response.status >= 500)
    id_, secret = document.get("client_id"), document.get("client_secret")
    if not isinstance(id_, str) or not id_ or not (secret is None or isinstance(secret, str)):
        raise AuthorizationError(f"{server.issuer} registered the client without a usable client_id")
    method = document.get("token_endpoint_auth_method") or method
    record: dict[str, Any] = {"id": id_, "redirect_uri": redirect_uri}
    if method == "none" or not secret:
        return record
    expires = document.get("client_secret_expires_at")
    until = float(min(expires, _MAX_TIME)) if isinstance(expires, int | float) and expires > 0 else None
    return {**record, "secret": secret, "method": method if method in _PREFERRED else None, "until": until}


def load_client(issuer: str, record: Mapping[str, Any] | None) -> KnownClient | None:
    """Return the client of a registration record; `None` without a record, or if its secret has expired."""
    if record is None or not isinstance(record.get("id"), str):
        return None
    until = record.get("until")
    if isinstance(until, int | float) and until < time.time():
        return None
    if isinstance(record.get("secret"), str):
        return ClientSecret(record["id"], issuer, record.get("redirect_uri"), record["secret"], record.get("method"))
    return KnownClient(record["id"], issuer, record.get("redirect_uri"))


def error_text(document: Mapping[str, Any]) -> str:
    """Return code and description of an OAuth error response, as one line (RFC 6749, section 5.2)."""
    texts = (document.get("error"), document.get("error_description"))
    return ": ".join(harmless(text)[:_MAX_REASON_CHARACTERS] for text in texts if isinstance(text, str) and text)
