"""Read what servers say of themselves: metadata of resources (RFC 9728) and of authorization servers (RFC 8414, OIDC).

MCP 2026-07-28, "Authorization Server Discovery". Nothing here fetches anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from mcp_bindgen.runtime.model.json_types import is_array
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from .dpop import target
from .fetch import is_loopback

RESOURCE = "oauth-protected-resource"
SERVER = "oauth-authorization-server"
OPENID = "openid-configuration"

_VISIBLE = re.compile(r"[\x21-\x7e]{1,2000}")
_MOST_SERVERS = 10
_MOST_SCOPES = 200


class BadMetadata(ValueError):
    """Metadata that must not be used; the message says which and why."""


@dataclass(frozen=True)
class ResourceMetadata:
    """Describe a protected resource, as it does itself.

    Attributes:
        resource: Its identifier, as it writes it.
        servers: The issuers of the authorization servers that it takes tokens of.
        scopes: The scopes that it wants for basic use, if it says.
        wants_dpop: Whether it says that it takes tokens that are bound to a key.
    """

    resource: str
    servers: tuple[str, ...]
    scopes: tuple[str, ...] | None = None
    wants_dpop: bool = False


@dataclass(frozen=True)
class ServerMetadata:
    """Describe an authorization server, as it does itself.

    Attributes:
        issuer: Its identifier.
        token_endpoint: Where tokens are issued.
        authorization_endpoint: Where users grant access.
        registration_endpoint: Where clients register themselves.
        revocation_endpoint: Where tokens are revoked.
        device_endpoint: Where devices without a browser begin (RFC 8628).
        challenge_methods: The methods of PKCE that it knows; `None` if it does not say.
        auth_methods: How clients may authenticate at the token endpoint.
        scopes: The scopes that it knows, if it says.
        sends_issuer: Whether its responses name it (RFC 9207).
        takes_documents: Whether the URL of a metadata document identifies a client.
        dpop_algorithms: What proofs of possession may be signed with; none if it does not know those.
        is_assumed: Whether it says nothing, and all this is what MCP 2025-03-26 has clients assume.
        is_legacy: Whether the resource named no authorization server, so that it must be one itself (MCP 2025-03-26).
    """

    issuer: str
    token_endpoint: str
    authorization_endpoint: str | None = None
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    device_endpoint: str | None = None
    challenge_methods: tuple[str, ...] | None = None
    auth_methods: tuple[str, ...] = ("client_secret_basic",)
    scopes: tuple[str, ...] | None = None
    sends_issuer: bool = False
    takes_documents: bool = False
    dpop_algorithms: tuple[str, ...] = ()
    is_assumed: bool = False
    is_legacy: bool = False


def canonical(url: str) -> str:
    """Return the identifier of the resource at a URL: without query and fragment, and without a slash for no path.

    Raises:
        ValueError: It is no URL.
    """
    found = target(url)
    return found.removesuffix("/") if urlsplit(found).path == "/" else found


def origin(url: str) -> str:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(target(url))
    return f"{parts.scheme}://{parts.netloc}"


def check_confidential(url: str) -> None:
    """Check that what is sent to a URL cannot be read on the way.

    Raises:
        AuthorizationError: It is neither https nor http on this machine.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise AuthorizationError("tokens are only sent over https, or to this machine")


def resource_places(url: str) -> list[str]:
    """Return where a resource may have its metadata: beside its path, then at the root (RFC 9728, section 3.1)."""
    path = urlsplit(target(url)).path
    inserted = [_inserted(url, RESOURCE, one) for one in (path, path.rstrip("/"), "")]
    return list(dict.fromkeys(inserted))


def server_places(issuer: str) -> list[str]:
    """Return where an authorization server may have its metadata, in the order of MCP 2026-07-28."""
    path = urlsplit(issuer).path.rstrip("/")
    places = [_inserted(issuer, SERVER, path), _inserted(issuer, OPENID, path)]
    return [*places, _replaced(issuer, f"{path}/.well-known/{OPENID}")] if path else places


def read_resource(document: Mapping[str, Any], place: str, url: str) -> ResourceMetadata:
    """Return the metadata of a resource, if it is that of the server at `url` (RFC 9728, section 3.3).

    Args:
        document: The metadata.
        place: Where it was.
        url: The server that was to be used.

    Raises:
        BadMetadata: It is about another resource, or breaks the format. What lies above the server is only accepted
            from the place that belongs to it.
    """
    resource = _text(document, "resource")
    if resource is None:
        raise BadMetadata("the metadata of the resource names no resource")
    if not _is_part(url, resource):
        raise BadMetadata("the metadata of the resource is about another one than the server that was asked")
    path = urlsplit(target(resource)).path
    own = {_inserted(resource, RESOURCE, one) for one in (path, path.rstrip("/"))}
    if _bare(resource) not in (_bare(url), target(url).rstrip("/")) and place not in own:
        raise BadMetadata("the metadata is about a resource above the server, and not at that resource's own address")
    servers = _texts(document, "authorization_servers") or ()
    bound = _flag(document, "dpop_bound_access_tokens_required")
    algorithms = _texts(document, "dpop_signing_alg_values_supported") or ()
    scopes = _texts(document, "scopes_supported")
    if scopes is not None and len(scopes) > _MOST_SCOPES:
        raise BadMetadata(f"the resource lists more than {_MOST_SCOPES} scopes")
    usable = [issuer for issuer in servers if _is_issuer(issuer)]
    if servers and not usable:
        raise BadMetadata("the resource names no authorization server with an https URL")
    return ResourceMetadata(resource, tuple(usable[:_MOST_SERVERS]), scopes, bound or "ES256" in algorithms)


def read_server(document: Mapping[str, Any], issuer: str, *, is_legacy: bool = False) -> ServerMetadata:
    """Return the metadata of an authorization server, if it is that of `issuer` (RFC 8414, section 3.3).

    Args:
        document: The metadata.
        issuer: Whose it should be, to the letter.
        is_legacy: Whether the issuer was made of the server's address, where a slash at the end may be missing.

    Raises:
        BadMetadata: It is that of another issuer, or breaks the format.
    """
    named = _text(document, "issuer")
    if named is None or named not in ((issuer, f"{issuer}/") if is_legacy else (issuer,)):
        raise BadMetadata("the metadata of the authorization server names another issuer than the one that was asked")
    token_endpoint = _text(document, "token_endpoint")
    if token_endpoint is None:
        raise BadMetadata("the authorization server names no token endpoint")
    return ServerMetadata(
        issuer=named,
        token_endpoint=token_endpoint,
        authorization_endpoint=_text(document, "authorization_endpoint"),
        registration_endpoint=_text(document, "registration_endpoint"),
        revocation_endpoint=_text(document, "revocation_endpoint"),
        device_endpoint=_text(document, "device_authorization_endpoint"),
        challenge_methods=_texts(document, "code_challenge_methods_supported"),
        auth_methods=_texts(document, "token_endpoint_auth_methods_supported") or ("client_secret_basic",),
        scopes=_texts(document, "scopes_supported"),
        sends_issuer=_flag(document, "authorization_response_iss_parameter_supported"),
        takes_documents=_flag(document, "client_id_metadata_document_supported"),
        dpop_algorithms=_texts(document, "dpop_signing_alg_values_supported") or (),
        is_legacy=is_legacy,
    )


def assumed_server(url: str) -> ServerMetadata:
    """Return what MCP 2025-03-26 has clients assume of a server without any metadata."""
    base = origin(url)
    return ServerMetadata(
        issuer=base,
        token_endpoint=f"{base}/token",
        authorization_endpoint=f"{base}/authorize",
        registration_endpoint=f"{base}/register",
        auth_methods=("none", "client_secret_post", "client_secret_basic"),
        is_assumed=True,
        is_legacy=True,
    )


def _is_issuer(url: str) -> bool:
    """Tell whether a URL can identify an authorization server (RFC 8414, section 2)."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    plain = not parts.query and not parts.fragment and "@" not in parts.netloc and _VISIBLE.fullmatch(url)
    return bool(secure and host and plain)


def _inserted(url: str, name: str, path: str) -> str:
    return _replaced(url, f"/.well-known/{name}{'' if path == '/' else path}")


def _replaced(url: str, path: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def _bare(url: str) -> str:
    """Return a URL for comparison: normalised, whether or not it ends in a slash; with its query, if it has one."""
    query = urlsplit(url).query
    return target(url).rstrip("/") + (f"?{query}" if query else "")


def _is_part(url: str, resource: str) -> bool:
    """Tell whether a resource is the server at a URL, or lies above it on the same origin."""
    try:
        whole, part = _bare(resource), target(url).rstrip("/")
        if urlsplit(resource).fragment or origin(resource) != origin(url):
            return False
    except ValueError:
        return False
    return whole in (part, _bare(url)) or part.startswith(f"{whole}/")


def _text(document: Mapping[str, Any], name: str) -> str | None:
    value = document.get(name)
    if value is not None and not isinstance(value, str):
        raise BadMetadata(f"{name} is not text")
    return value


def _texts(document: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    value = document.get(name)
    if value is None:
        return None
    if not is_array(value) or not all(isinstance(one, str) for one in value):
        raise BadMetadata(f"{name} is not a list of texts")
    return tuple(value)


def _flag(document: Mapping[str, Any], name: str) -> bool:
    return document.get(name) is True
