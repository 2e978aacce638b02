"""Find the authorization server of an MCP server (MCP 2026-07-28, "Authorization Server Discovery")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from ..fetch import Fetcher, FetchError, place
from ..metadata import (
    SERVER,
    BadMetadata,
    ResourceMetadata,
    ServerMetadata,
    assumed_server,
    origin,
    read_resource,
    read_server,
    resource_places,
    server_places,
)

_ABSENT = (404, 410)


async def find_resource(fetcher: Fetcher, url: str, named: str | None) -> ResourceMetadata | None:
    """Return the metadata of the resource at a URL; `None` if there is none, which is so in MCP 2025-03-26.

    Args:
        fetcher: Fetches it.
        url: The MCP server.
        named: Where its challenge says that the metadata is.

    Raises:
        AuthorizationError: There is something that cannot be used, or nobody knows whether there is.
    """
    places = list(dict.fromkeys([named or "", *resource_places(url)]))
    found = await _first(fetcher, [where for where in places if where])
    if found is None:
        return None
    where, document = found
    try:
        return read_resource(document, where, url)
    except BadMetadata as error:
        raise AuthorizationError(f"{place(url)} cannot be used: {error}") from None


async def find_server(fetcher: Fetcher, issuer: str) -> ServerMetadata:
    """Return the metadata of an authorization server.

    Raises:
        AuthorizationError: There is none that can be used.
    """
    found = await _first(fetcher, server_places(issuer))
    if found is None:
        raise AuthorizationError(f"{place(issuer)} has no metadata of an authorization server")
    try:
        return _checked(fetcher, read_server(found[1], issuer))
    except (BadMetadata, FetchError) as error:
        raise AuthorizationError(f"{place(issuer)} cannot be used: {error}") from None


async def find_legacy_server(fetcher: Fetcher, url: str) -> ServerMetadata:
    """Return the metadata of a server that is its own authorization server, as MCP 2025-03-26 has it.

    Raises:
        AuthorizationError: There is something that cannot be used, or nobody knows whether there is.
    """
    base = origin(url)
    found = await _first(fetcher, [f"{base}/.well-known/{SERVER}"], only_absent=True)
    if found is None:
        return assumed_server(url)
    try:
        return _checked(fetcher, read_server(found[1], base, is_legacy=True))
    except (BadMetadata, FetchError) as error:
        raise AuthorizationError(f"{place(base)} cannot be used: {error}") from None


def _checked(fetcher: Fetcher, server: ServerMetadata) -> ServerMetadata:
    """Check the endpoints that will be posted to, before anybody is asked to log in for nothing."""
    for url in (
        server.token_endpoint,
        server.registration_endpoint,
        server.device_endpoint,
        server.revocation_endpoint,
    ):
        if url is not None:
            fetcher.check(url)
    return server


async def _first(
    fetcher: Fetcher, places: Sequence[str], *, only_absent: bool = False
) -> tuple[str, Mapping[str, Any]] | None:
    """Return the first of some documents that is there; `None` only if the answer is no everywhere.

    A server that fails is not one that has nothing: what is assumed of those would be assumed of it.

    Args:
        fetcher: Fetches them.
        places: Where they may be.
        only_absent: Whether the answer is only no if it says that nothing is there.
    """
    failure: FetchError | None = None
    for where in places:
        try:
            fetched = await fetcher.get_json(where)
        except FetchError as error:
            if error.is_temporary or error.is_refused:
                raise AuthorizationError(str(error), is_temporary=error.is_temporary) from None
            failure = error
            continue
        if fetched.is_success and fetched.object is not None:
            return where, fetched.object
        if fetched.status >= 500 or fetched.status == 429:
            raise AuthorizationError(f"{place(where)} answered {fetched.status}", is_temporary=True)
        if fetched.is_success:
            failure = FetchError(f"{place(where)} answered with something else than metadata")
        elif only_absent and fetched.status not in _ABSENT:
            failure = FetchError(
                f"{place(where)} answered {fetched.status}, which does not say that it has no metadata"
            )
    if failure is not None:
        raise AuthorizationError(str(failure))
    return None
