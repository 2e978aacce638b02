"""Find out where an issuer has its endpoints, which is in its metadata (RFC 8414, OpenID Connect Discovery)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from ..fetch import Fetcher, FetchError, is_loopback

OAUTH, OPENID = "oauth-authorization-server", "openid-configuration"


def fetcher_for(issuer: str, *others: str | None, private: bool = False) -> Fetcher:
    """Return what fetches from an issuer that the operator has chosen.

    Args:
        issuer: The issuer. One on this machine, as in development, may be fetched from over http.
        others: URLs that the operator has named, too.
        private: Whether the hosts of these may have addresses inside of a network.

    Raises:
        ValueError: The issuer is no URL of https, or http on this machine.
    """
    hosts = [urlsplit(url).hostname or "" for url in (issuer, *others) if url is not None]
    found = Fetcher(trusted=frozenset(hosts) if private else frozenset(), loopback=is_loopback(hosts[0]))
    try:
        found.check(issuer)
    except FetchError as error:
        hint = ": pass private=True if that is meant" if "inside" in str(error) else ""
        raise ValueError(f"the issuer cannot be used: {error}{hint}") from None
    return found


def metadata_urls(issuer: str) -> list[str]:
    """Return where an issuer may have its metadata, the best first."""
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    inserted = [f"{origin}/.well-known/{name}{path}" for name in (OAUTH, OPENID)]
    return [*inserted, f"{origin}{path}/.well-known/{OPENID}"] if path else inserted


async def read_metadata(fetcher: Fetcher, issuer: str) -> dict[str, Any]:
    """Return the metadata of an issuer.

    Raises:
        FetchError: It has none, or says there that it is another one.
    """
    failure: FetchError | None = None
    for url in metadata_urls(issuer):
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
