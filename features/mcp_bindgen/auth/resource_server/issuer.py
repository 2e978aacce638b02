"""Find out where an issuer has its endpoints, which is in its metadata (RFC 8414, OpenID Connect Discovery)."""

from __future__ import annotations

import ssl
from typing import Any
from urllib.parse import urlsplit

from ..fetch import Fetcher, FetchError, is_loopback
from ..metadata import server_places


def fetcher_for(
    issuer: str, *others: str | None, private: bool = False, verify: ssl.SSLContext | None = None
) -> Fetcher:
    """Return what fetches from an issuer that the operator has chosen.

    Args:
        issuer: The issuer. One on this machine, as in development, may be fetched from over http.
        others: URLs that the operator has named, too.
        private: Whether the hosts of these may have addresses inside of a network.
        verify: Whom to trust with TLS; by default who is trusted on this machine.

    Raises:
        ValueError: The issuer is no URL of https, or http on this machine.
    """
    hosts = [urlsplit(url).hostname or "" for url in (issuer, *others) if url is not None]
    trusted = frozenset(hosts) if private else frozenset[str]()
    found = Fetcher(trusted=trusted, loopback=is_loopback(hosts[0]), verify=verify)
    try:
        found.check(issuer)
    except FetchError as error:
        hint = ": pass private=True if that is meant" if "inside" in str(error) else ""
        raise ValueError(f"the issuer cannot be used: {error}{hint}") from None
    return found


async def read_metadata(fetcher: Fetcher, issuer: str) -> dict[str, Any]:
    """Return the metadata of an issuer.

    Raises:
        FetchError: It has none, or says there that it is another one.
    """
    failure: FetchError | None = None
    for url in server_places(issuer):
        try:
            fetched = await fetcher.get_json(url)
        except FetchError as error:
            failure = error
            continue
        found = fetched.object
        if not fetched.is_success or found is None:
            continue
        if found.get("issuer") != issuer:
            raise FetchError(f"the metadata at {url} is that of another issuer")
        return found
    raise failure or FetchError(f"{issuer} has no metadata")
