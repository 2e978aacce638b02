"""Become known to an authorization server (MCP 2026-07-28, "Client Registration"; RFC 7591)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from mcp_bindgen.runtime.logs import harmless
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from ..fetch import is_loopback
from ..metadata import ServerMetadata
from .clients import ClientSecret, KnownClient

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"

_FAR = 1e15  # seconds since 1970
_PREFERRED = ("none", "client_secret_basic", "client_secret_post")


def client_metadata(url: str, name: str, redirect_uris: list[str]) -> dict[str, Any]:
    """Return the document that a client publishes at `url`, by which it is known then.

    Args:
        url: Where it will be published; https, with a path.
        name: What users are shown.
        redirect_uris: Where they may come back to.
    """
    return {
        "client_id": url,
        "client_name": name,
        "redirect_uris": redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }


def registration(server: ServerMetadata, name: str, redirect_uri: str | None) -> dict[str, Any]:
    """Return what a client says of itself to register (RFC 7591, section 2).

    It names no scopes: some servers would let it have no others later on.

    Args:
        server: The authorization server.
        name: What users are shown.
        redirect_uri: Where they come back to; `None` if they use another device.
    """
    host = urlsplit(redirect_uri or "").hostname or ""
    method = next((one for one in _PREFERRED if one in server.auth_methods), None)
    if method is None:
        raise AuthorizationError(f"{server.issuer} registers no clients that authenticate with a secret or not at all")
    wanted: dict[str, Any] = {
        "client_name": name,
        "application_type": "native" if redirect_uri is None or is_loopback(host) else "web",
        "grant_types": ["authorization_code" if redirect_uri else DEVICE_GRANT, "refresh_token"],
        "token_endpoint_auth_method": method,
    }
    if redirect_uri is None:
        return {**wanted, "redirect_uris": [], "response_types": []}
    return {**wanted, "redirect_uris": [redirect_uri], "response_types": ["code"]}


def registered(
    server: ServerMetadata, document: Mapping[str, Any], redirect_uri: str | None, method: str
) -> tuple[KnownClient, float | None]:
    """Return the client that was registered, and when its secret expires (RFC 7591, section 3.2.1).

    Args:
        server: Who registered it.
        document: The answer.
        redirect_uri: What was registered.
        method: How the client wanted to authenticate.

    Raises:
        AuthorizationError: The answer cannot be used.
    """
    id_, secret = document.get("client_id"), document.get("client_secret")
    if not isinstance(id_, str) or not id_ or not (secret is None or isinstance(secret, str)):
        raise AuthorizationError(f"{server.issuer} registered the client without telling its id")
    method = document.get("token_endpoint_auth_method") or method
    expires = document.get("client_secret_expires_at")
    until = float(min(expires, _FAR)) if isinstance(expires, int | float) and expires > 0 else None
    if method == "none" or not secret:
        return KnownClient(id_, server.issuer, redirect_uri), None
    known = method if method in _PREFERRED else None
    return ClientSecret(id_, server.issuer, redirect_uri, secret, known), until


def rejection(server: ServerMetadata, status: int, document: Mapping[str, Any] | None) -> AuthorizationError:
    """Return the error that explains why a registration was rejected, and what else there is."""
    said = document or {}
    code, words = said.get("error"), said.get("error_description")
    why = ": ".join(harmless(one)[:200] for one in (code, words) if isinstance(one, str) and one)
    return AuthorizationError(
        f"{server.issuer} does not register this client ({status}{f', {why}' if why else ''}); "
        "register it there yourself and name it: OAuth(client=KnownClient(id))",
        is_temporary=status >= 500,
    )


def dump(client: KnownClient, until: float | None) -> dict[str, Any]:
    """Return a registration as it is kept."""
    kept: dict[str, Any] = {"id": client.id, "redirect_uri": client.redirect_uri}
    if isinstance(client, ClientSecret):
        kept |= {"secret": client.secret, "method": client.method, "until": until}
    return kept


def load(issuer: str, kept: Mapping[str, Any] | None) -> KnownClient | None:
    """Return a registration that was kept; `None` if there is none, or its secret has expired."""
    id_, redirect_uri = (kept or {}).get("id"), (kept or {}).get("redirect_uri")
    if kept is None or not isinstance(id_, str):
        return None
    until = kept.get("until")
    if isinstance(until, int | float) and until < time.time():
        return None
    if isinstance(kept.get("secret"), str):
        return ClientSecret(id_, issuer, redirect_uri, kept["secret"], kept.get("method"))
    return KnownClient(id_, issuer, redirect_uri)
