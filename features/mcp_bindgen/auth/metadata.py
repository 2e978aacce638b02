"""Metadata of resources (RFC 9728) and authorization servers (RFC 8414, OpenID Connect), and its discovery.

MCP 2026-07-28, "Authorization Server Discovery".
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from mcp_bindgen.http.client.bounded import shown
from mcp_bindgen.runtime.logs import harmless
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from .fetch import Fetcher, FetchError, InternalAddress, is_loopback

RESOURCE = "oauth-protected-resource"
SERVER = "oauth-authorization-server"
OPENID = "openid-configuration"

_PORTS = {"http": 80, "https": 443}
_ISSUER = re.compile(r"[\x21-\x7e]{1,2000}")
_MAX_SERVERS = 10
_MAX_SCOPES = 200
_MAX_SHOWN = 200  # characters of an unexpected issuer
_ABSENT = (404, 410)
_SLASH_FIX = 'if they are one: --ignore-final-slash, "ignoreFinalSlash" or ServerQuirks(ignore_final_slash=True)'

T = TypeVar("T")
_Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: () if value is None else value)]
_Flag = Annotated[bool, BeforeValidator(lambda value: value is True)]


class BadMetadata(AuthorizationError):
    """Metadata must not be used; the message says which and why."""


@dataclass(frozen=True)
class ResourceMetadata:
    """Metadata of a protected resource (RFC 9728, section 2).

    Attributes:
        resource: Its identifier, as the resource writes it.
        authorization_servers: Issuers whose tokens the resource accepts.
        scopes_supported: Scopes for basic use; empty if the resource lists none.
        dpop_bound_access_tokens_required: True if the resource accepts only tokens that are bound to a key.
        dpop_signing_alg_values_supported: Algorithms of proofs that the resource accepts.
    """

    resource: str
    authorization_servers: _Texts = ()
    scopes_supported: Annotated[_Texts, Field(max_length=_MAX_SCOPES)] = ()
    dpop_bound_access_tokens_required: _Flag = False
    dpop_signing_alg_values_supported: _Texts = ()


@dataclass(frozen=True)
class ServerMetadata:
    """Metadata of an authorization server (RFC 8414, section 2); fields have the names of their RFCs.

    Attributes:
        code_challenge_methods_supported: Methods of PKCE; `None` if the metadata does not list them.
        authorization_response_iss_parameter_supported: True if authorization responses name the issuer (RFC 9207).
        client_id_metadata_document_supported: True if the URL of a metadata document identifies a client.
        is_legacy: True if the resource named no authorization server and is assumed to be its own (MCP 2025-03-26).
    """

    issuer: str
    token_endpoint: str
    authorization_endpoint: str | None = None
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    device_authorization_endpoint: str | None = None
    code_challenge_methods_supported: tuple[str, ...] | None = None
    token_endpoint_auth_methods_supported: _Texts = ()
    scopes_supported: _Texts = ()
    authorization_response_iss_parameter_supported: _Flag = False
    client_id_metadata_document_supported: _Flag = False
    dpop_signing_alg_values_supported: _Texts = ()
    is_legacy: bool = False

    @property
    def auth_methods(self) -> tuple[str, ...]:
        """Ways for clients to authenticate at the token endpoint, with the default of RFC 8414."""
        return self.token_endpoint_auth_methods_supported or ("client_secret_basic",)


_RESOURCES = TypeAdapter(ResourceMetadata)
_SERVERS = TypeAdapter(ServerMetadata)


# --- URLs -----------------------------------------------------------------------------------------------------


def target_uri(url: str) -> str:
    """Return the claim `htu` for a URL: normalized, without query and fragment (RFC 9449, section 4.3).

    Raises:
        ValueError: The text is no URL.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    host = host if host.isascii() else host.encode("idna").decode()  # as HTTP clients send it
    host = f"[{host}]" if ":" in host else host
    scheme = parts.scheme.lower()
    port = "" if parts.port in (None, _PORTS.get(scheme)) else f":{parts.port}"
    return urlunsplit((scheme, f"{host}{port}", parts.path or "/", "", ""))


def canonical(url: str) -> str:
    """Return the identifier of the resource at a URL: without query and fragment, and without a slash for no path.

    Raises:
        ValueError: The text is no URL.
    """
    found = target_uri(url)
    return found.removesuffix("/") if urlsplit(found).path == "/" else found


def origin(url: str) -> str:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(target_uri(url))
    return f"{parts.scheme}://{parts.netloc}"


def check_confidential(url: str) -> None:
    """Check that a request to a URL is encrypted or stays on this machine.

    Raises:
        AuthorizationError: The scheme is neither https nor http on this machine.
    """
    if not is_secure(url):
        raise AuthorizationError("tokens are only sent over https, or to this machine")


def check_same_origin(url: str, server: str) -> None:
    """Check that a URL is on the server that a token is for; raise `AuthorizationError` otherwise."""
    if origin(url) != origin(server):
        raise AuthorizationError("a token is not sent to another server than its own")


def resource_key(url: str) -> str:
    """Return the name of the resource at a URL in a store: `canonical`, with the query, which may name a tenant."""
    query = urlsplit(url).query
    return canonical(url) + (f"?{query}" if query else "")


def resource_metadata_urls(url: str) -> list[str]:
    """Return the URLs at which a resource may have its metadata: beside its path, then at the root (RFC 9728, 3.1).

    The query is part of the first one.
    """
    path, query = urlsplit(target_uri(url)).path, urlsplit(url).query
    inserted = [_inserted(url, RESOURCE, one) for one in (path, path.rstrip("/"), "")]
    return list(dict.fromkeys([f"{inserted[0]}?{query}" if query else inserted[0], *inserted]))


def server_metadata_urls(issuer: str) -> list[str]:
    """Return the URLs at which an authorization server may have its metadata, in the order of MCP 2026-07-28."""
    path = urlsplit(issuer).path.rstrip("/")
    urls = [_inserted(issuer, SERVER, path), _inserted(issuer, OPENID, path)]
    return [*urls, _replaced(issuer, f"{path}/.well-known/{OPENID}")] if path else urls


# --- documents ------------------------------------------------------------------------------------------------


def read_resource(document: Mapping[str, Any], metadata_url: str, url: str) -> ResourceMetadata:
    """Return the metadata of a resource if it identifies the server at `url` (RFC 9728, section 3.3).

    Args:
        document: The metadata.
        metadata_url: Its URL.
        url: The MCP server.

    Raises:
        BadMetadata: The metadata describes another resource, or breaks the format. A resource above the server is only
            accepted from the well-known URL of that resource.
    """
    found = _read(_RESOURCES, document)
    resource, servers = found.resource, found.authorization_servers
    if not _is_part(url, resource):
        raise BadMetadata("the metadata of the resource describes another resource than the server")
    path = urlsplit(target_uri(resource)).path
    own = {_inserted(resource, RESOURCE, one) for one in (path, path.rstrip("/"))}
    if _bare(resource) not in (_bare(url), target_uri(url).rstrip("/")) and metadata_url not in own:
        raise BadMetadata("the metadata describes a resource above the server, and is not at that resource's own URL")
    usable = [issuer for issuer in servers if _is_issuer(issuer)]
    if servers and not usable:
        raise BadMetadata("the resource names no authorization server with an https URL")
    return replace(found, authorization_servers=tuple(usable[:_MAX_SERVERS]))


def is_issuer(named: object, issuer: str, *, ignores_slash: bool = False) -> bool:
    """Return True if a value names an issuer, character by character except for a final slash that is ignored."""
    is_near = isinstance(named, str) and named.removesuffix("/") == issuer.removesuffix("/")
    return named == issuer or (ignores_slash and is_near)


def other_issuer(named: object, issuer: str) -> str:
    """Return what an error says about another issuer than the expected one, with the fix for a final slash."""
    return f"names another issuer than {issuer}: {harmless(str(named))[:_MAX_SHOWN]}{slash_fix([named], [issuer])}"


def slash_fix(named: Iterable[object], expected: Collection[str]) -> str:
    """Return the fix for an error about issuers that differ only in a final slash; empty for other issuers."""
    is_near = any(is_issuer(one, issuer, ignores_slash=True) for one in named for issuer in expected)
    return f"; {_SLASH_FIX}" if is_near else ""


def read_server(document: Mapping[str, Any], issuer: str, *, ignores_slash: bool = False) -> ServerMetadata:
    """Return the metadata of an authorization server if it names `issuer` (RFC 8414, section 3.3).

    Args:
        document: The metadata.
        issuer: The expected issuer, character by character.
        ignores_slash: True if a final slash is ignored.

    Raises:
        BadMetadata: The metadata names another issuer, or breaks the format.
    """
    found = _read(_SERVERS, document)
    if not is_issuer(found.issuer, issuer, ignores_slash=ignores_slash):
        raise BadMetadata(f"the metadata of the authorization server {other_issuer(found.issuer, issuer)}")
    return replace(found, is_legacy=False)  # never taken from the document


def assumed_server(url: str) -> ServerMetadata:
    """Return the metadata that clients of MCP 2025-03-26 assume for a server without any."""
    base = origin(url)
    return ServerMetadata(
        issuer=base,
        token_endpoint=f"{base}/token",
        authorization_endpoint=f"{base}/authorize",
        registration_endpoint=f"{base}/register",
        token_endpoint_auth_methods_supported=("none", "client_secret_post", "client_secret_basic"),
        is_legacy=True,
    )


def _read(adapter: TypeAdapter[T], document: Mapping[str, Any]) -> T:
    try:
        return adapter.validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise BadMetadata(f"the metadata has no usable {first['loc'][0]}: {first['msg']}") from None


# --- discovery ------------------------------------------------------------------------------------------------


async def find_resource(fetcher: Fetcher, url: str, named: str | None) -> ResourceMetadata | None:
    """Return the metadata of the resource at a URL; `None` if there is none, as in MCP 2025-03-26.

    Args:
        fetcher: Fetches the metadata.
        url: The MCP server.
        named: URL of the metadata in the server's challenge.

    Raises:
        AuthorizationError: The metadata cannot be used, or its absence is not certain.
    """
    found = await _first(fetcher, [*([named] if named else []), *resource_metadata_urls(url)])
    if found is None:
        return None
    with _naming(url):
        return read_resource(found[1], found[0], url)


async def find_server(fetcher: Fetcher, issuer: str, *, ignores_slash: bool = False) -> ServerMetadata:
    """Return the metadata of an authorization server.

    Args:
        fetcher: Fetches the metadata.
        issuer: The authorization server.
        ignores_slash: True if a final slash of the issuer is ignored.

    Raises:
        AuthorizationError: There is none that can be used.
    """
    try:
        found = await _first(fetcher, server_metadata_urls(issuer))
    except InternalAddress as error:
        option = f"--issuer {shlex.quote(issuer)}"
        fix = f'if you trust it, name it: {option}, "issuer" of an entry, or OAuth(fetcher=Fetcher(trusted=...))'
        raise AuthorizationError(f"{error}; {fix}") from None
    if found is None:
        raise AuthorizationError(f"{shown(issuer)} has no metadata of an authorization server")
    with _naming(issuer):
        read = read_server(found[1], issuer, ignores_slash=ignores_slash)
        return _checked(fetcher, replace(read, issuer=issuer))


async def find_legacy_server(fetcher: Fetcher, url: str) -> ServerMetadata:
    """Return the metadata of a server that is its own authorization server (MCP 2025-03-26).

    Raises:
        AuthorizationError: The metadata cannot be used, or its absence is not certain.
    """
    base = origin(url)
    found = await _first(fetcher, [f"{base}/.well-known/{SERVER}"], only_absent=True)
    if found is None:
        return assumed_server(url)
    with _naming(base):
        # the issuer was derived from the server's URL, so that it may lack a final slash
        return _checked(fetcher, replace(read_server(found[1], base, ignores_slash=True), is_legacy=True))


async def find_document(fetcher: Fetcher, issuer: str, *, ignores_slash: bool = False) -> Mapping[str, Any]:
    """Return the metadata of an issuer that the operator of a resource server has chosen.

    Raises:
        FetchError: The issuer has no metadata, or its metadata names another issuer.
    """
    found = await _first(fetcher, server_metadata_urls(issuer), is_strict=False)
    if found is None:
        raise FetchError(f"{issuer} has no metadata")
    named = found[1].get("issuer")
    if not is_issuer(named, issuer, ignores_slash=ignores_slash):
        raise FetchError(f"the metadata at {found[0]} {other_issuer(named, issuer)}")
    return found[1]


def _checked(fetcher: Fetcher, server: ServerMetadata) -> ServerMetadata:
    """Check the endpoints for POST requests before a user logs in."""
    endpoints = (server.token_endpoint, server.registration_endpoint, server.revocation_endpoint)
    for url in (*endpoints, server.device_authorization_endpoint):
        if url is not None:
            fetcher.check(url)
    return server


async def _first(
    fetcher: Fetcher, urls: Sequence[str], *, only_absent: bool = False, is_strict: bool = True
) -> tuple[str, Mapping[str, Any]] | None:
    """Return the URL and content of the first document that exists; `None` only if all URLs answer with 4xx.

    Args:
        fetcher: Fetches the documents.
        urls: Their possible URLs.
        only_absent: True if only 404 and 410 prove that a document does not exist.
        is_strict: True if a failing server ends the search: otherwise its metadata could be replaced by assumptions.

    Raises:
        FetchError: A document cannot be fetched, or is no metadata.
    """
    failure: FetchError | None = None
    for url in dict.fromkeys(urls):
        try:
            fetched = await fetcher.get_json(url)
            if fetched.is_success and fetched.object is not None:
                return url, fetched.object
            if fetched.is_success:
                raise FetchError(f"{shown(url)} answered without a JSON object")
            if fetched.is_failure or (only_absent and fetched.status not in _ABSENT):
                raise FetchError(f"{shown(url)} answered {fetched.status}", is_temporary=fetched.is_failure)
        except FetchError as error:
            if is_strict and (error.is_temporary or error.is_refused):
                raise
            failure = error
    if failure is not None:
        raise failure
    return None


@contextmanager
def _naming(url: str) -> Generator[None]:
    """Name a server in the errors about its metadata."""
    try:
        yield
    except (BadMetadata, FetchError) as error:
        raise AuthorizationError(f"{shown(url)} cannot be used: {error}") from None


# --- helpers --------------------------------------------------------------------------------------------------


def is_secure(url: str) -> bool:
    """Return True for a URL of https, or of http on this machine."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def _is_issuer(url: str) -> bool:
    """Return True if a URL can identify an authorization server (RFC 8414, section 2)."""
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname)
    except ValueError:
        return False
    is_plain = not parts.query and not parts.fragment and "@" not in parts.netloc
    return has_host and is_plain and _ISSUER.fullmatch(url) is not None and is_secure(url)


def _inserted(url: str, name: str, path: str) -> str:
    return _replaced(url, f"/.well-known/{name}{'' if path == '/' else path}")


def _replaced(url: str, path: str) -> str:
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def _bare(url: str) -> str:
    """Return a URL for comparison: normalized, without a slash at the end, with its query."""
    query = urlsplit(url).query
    return target_uri(url).rstrip("/") + (f"?{query}" if query else "")


def _is_part(url: str, resource: str) -> bool:
    """Return True if a resource is the server at a URL, or lies above it on the same origin."""
    try:
        whole, part = _bare(resource), target_uri(url).rstrip("/")
        if urlsplit(resource).fragment or origin(resource) != origin(url):
            return False
    except ValueError:
        return False
    return whole in (part, _bare(url)) or part.startswith(f"{whole}/")
