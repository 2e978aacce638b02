"""Bounded fetches of documents whose URLs another server names (server-side request forgery).

A server names the URL of its metadata, and the metadata names further URLs: each may point into the network of this
program (MCP, "Security Best Practices"; RFC 9728, section 7.7). So a host is resolved once, its addresses are compared
with a table, and the connection goes to the checked address.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
import urllib.request
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any
from urllib.parse import urlencode

import anyio
import httpx2
from pydantic_core import to_json

from mcp_bindgen.http.client.bounded import certificates, read_body, reason, send, shown
from mcp_bindgen.runtime.model.json_types import is_array, is_object, parse_json
from mcp_bindgen.runtime.protocol.errors import AuthorizationError
from mcp_bindgen.runtime.protocol.transport import Oversized

LIMIT = 256 * 1024
"""Largest document in bytes, after decompression."""

TIMEOUT = 15.0
"""Seconds for a whole fetch."""

MAX_DEPTH = 32
"""Levels of nested arrays and objects in a document."""

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Iterable[str]]]

# Python's `is_global` differs between versions, and is true for addresses that embed private ones (NAT64, 6to4).
_CLOSED_4 = """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
    192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/3
"""
_CLOSED_6 = "2001::/23 2001:db8::/32 3fff::/20"
_CLOSED = [ipaddress.ip_network(text) for text in f"{_CLOSED_4} {_CLOSED_6}".split()]
_GLOBAL_6 = IPv6Network("2000::/3")  # the rest is not routed on the internet, or embeds an IPv4 address
_EMBEDS = {IPv6Network("::ffff:0:0/96"): 0, IPv6Network("64:ff9b::/96"): 0, IPv6Network("2002::/16"): 80}
_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class FetchError(AuthorizationError):
    """A document could not be fetched; the message names host and reason, and nothing secret.

    Attributes:
        is_refused: True if nothing was sent, because the URL must not be fetched.
    """

    def __init__(self, reason: str, *, is_temporary: bool = False, is_refused: bool = False) -> None:
        super().__init__(reason, is_temporary=is_temporary)
        self.is_refused = is_refused


class InternalAddress(FetchError):
    """A URL leads into a network, to a host that neither user nor operator has named."""


@dataclass(frozen=True)
class Fetched:
    """A response.

    Attributes:
        status: HTTP status.
        headers: Headers; names are matched in any case.
        document: JSON value of the body; `None` if the body is no JSON.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    document: Any = field(repr=False)

    @property
    def is_success(self) -> bool:
        """True for 2xx."""
        return 200 <= self.status < 300

    @property
    def is_failure(self) -> bool:
        """True if a later request may succeed: 5xx or 429."""
        return self.status >= 500 or self.status == 429

    @property
    def object(self) -> dict[str, Any] | None:
        """The document if it is a JSON object."""
        return self.document if is_object(self.document) else None


def is_public(address: Address) -> bool:
    """Return True for an address of the internet, False for private, local and reserved addresses."""
    if isinstance(address, IPv6Address):
        for network, shift in _EMBEDS.items():
            if address in network:
                return is_public(IPv4Address(int(address) >> shift & 0xFFFFFFFF))
        if address not in _GLOBAL_6:
            return False
    return not any(address in network for network in _CLOSED)


def is_loopback(host: str) -> bool:
    """Return True if the name of a host is `localhost` or a loopback address."""
    literal = _literal(host)
    return host.lower().rstrip(".") == "localhost" if literal is None else _is_local(literal)


@dataclass(frozen=True)
class Fetcher:
    """Bounded HTTP client: https, or http on this machine; public addresses and trusted hosts; no redirects.

    Each fetch opens a connection, so that two hosts at one address never share one.

    Attributes:
        trusted: Hosts that the user or operator has named: they may have any address.
        loopback: True if this machine may be fetched from, as in development.
        verify: Certificates to trust; by default those of this machine.
        proxy: URL of a proxy; by default from the environment. A proxy resolves host names, so only addresses in URLs
            are compared with the table then.
        timeout: Seconds for a whole fetch.
        limit: Largest body in bytes, after decompression.
        resolve: Returns the addresses of a host at a port.
    """

    trusted: frozenset[str] = frozenset()
    loopback: bool = False
    verify: ssl.SSLContext | None = None
    proxy: str | None = field(default=None, repr=False)
    timeout: float = TIMEOUT
    limit: int = LIMIT
    resolve: Resolve = field(default_factory=lambda: _resolve, repr=False)

    async def get_json(self, url: str) -> Fetched:
        """Fetch a JSON document.

        Raises:
            FetchError: The URL must not be fetched, or the response is late, too large, a redirect, or a success
                without valid JSON.
        """
        return await self._fetch("GET", url, {}, None)

    async def post_form(
        self, url: str, form: Mapping[str, str], *, headers: Mapping[str, str] | None = None
    ) -> Fetched:
        """Post a form; the response is a JSON document or empty. Raises as `get_json`."""
        typed = {**(headers or {}), "content-type": "application/x-www-form-urlencoded"}
        return await self._fetch("POST", url, typed, urlencode(form).encode("ascii"))

    async def post_json(self, url: str, value: Mapping[str, Any]) -> Fetched:
        """Post a JSON document; the response is a JSON document or empty. Raises as `get_json`."""
        return await self._fetch("POST", url, {"content-type": "application/json"}, to_json(value))

    def check(self, url: str) -> httpx2.URL:
        """Return the parsed URL if it may be fetched, as far as the URL itself shows.

        Raises:
            FetchError: The text is no URL, neither https nor http on this machine, or has credentials or a fragment.
        """
        try:
            parsed = httpx2.URL(url)
            host, port = _host(parsed), parsed.port
        except (httpx2.InvalidURL, ValueError):
            raise FetchError("an invalid URL cannot be fetched", is_refused=True) from None
        literal, problem = _literal(host), None
        if parsed.scheme not in ("https", "http") or not host:
            problem = "is not a URL of the web"
        elif parsed.userinfo or parsed.fragment or not 0 < (1 if port is None else port) < 65536:
            problem = "has credentials, a fragment or no usable port"
        elif literal is None and ("%" in host or _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2])):
            problem = "hides an address"
        elif parsed.scheme == "http" and not is_loopback(host):
            problem = "is not https"
        elif not self._may_use(host, literal) if literal else is_loopback(host) and not self.loopback:
            raise _internal(parsed)  # a proxy, asked next, has its own localhost
        if problem is not None:
            raise FetchError(f"{shown(parsed)} {problem}", is_refused=True)
        return parsed

    def _may_use(self, host: str, address: Address) -> bool:
        if is_loopback(host):
            return _is_local(address) and self.loopback
        return is_public(address) or host.lower() in self.trusted

    async def _fetch(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None) -> Fetched:
        parsed = self.check(url)
        place = shown(parsed)
        try:
            with anyio.fail_after(self.timeout):
                response, body = await self._exchange(method, parsed, headers, content)
        except TimeoutError:
            raise FetchError(f"{place} did not answer within {self.timeout:g} seconds", is_temporary=True) from None
        except httpx2.DecodingError as error:
            raise FetchError(f"no usable answer from {place}: {reason(error)}") from None
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, ImportError, OSError, ValueError) as error:
            raise FetchError(f"no answer from {place}: {reason(error)}", is_temporary=True) from None
        if isinstance(body, Oversized):
            raise FetchError(f"{place} answered with more than {self.limit} bytes")
        if response.status_code in _REDIRECTS:
            raise FetchError(f"{place} redirects; redirects are not followed")
        document = _document(body)
        if document is None and response.is_success and (body or method == "GET"):
            raise FetchError(f"{place} answered with a body that is not JSON, or nested too deeply")
        return Fetched(response.status_code, response.headers, document)

    async def _exchange(
        self, method: str, url: httpx2.URL, headers: Mapping[str, str], content: bytes | None
    ) -> tuple[httpx2.Response, bytes | Oversized]:
        host = url.netloc.decode("ascii")
        sent = {"accept": "application/json", "accept-encoding": "identity", **headers, "host": host}
        proxy = self.proxy or _environment_proxy(url)
        addresses = [url] if proxy else await self._pinned(url)
        verify = self.verify or certificates()
        timeout = httpx2.Timeout(self.timeout, connect=self.timeout / max(1, len(addresses)))
        async with httpx2.AsyncClient(verify=verify, proxy=proxy, trust_env=False, timeout=timeout) as client:
            failure: Exception | None = None
            for pinned in addresses:
                request = client.build_request(method, pinned, headers=sent, content=content)
                if pinned is not url:
                    request.extensions = {**request.extensions, "sni_hostname": _host(url)}
                try:
                    async with send(client, request) as response:
                        return response, await read_body(response, self.limit)
                except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                    failure = error
            raise failure or FetchError(f"{shown(url)} has no address")

    async def _pinned(self, url: httpx2.URL) -> list[httpx2.URL]:
        """Return the URL with each allowed address of its host in place of the name."""
        host = _host(url)
        if _literal(host) is not None:
            return [url]
        port = url.port or (443 if url.scheme == "https" else 80)
        found = [ipaddress.ip_address(text) for text in await self.resolve(host, port)]
        usable = [address for address in found if self._may_use(host, address)]
        if found and not usable:
            raise _internal(url)
        return [url.copy_with(host=str(address)) for address in dict.fromkeys(usable)]


def _document(body: bytes) -> Any:
    """Return a JSON document; `None` if the body is no JSON, or nested too deeply."""
    try:
        document = parse_json(body)
    except ValueError:
        return None
    level: list[Any] = [document]
    for _ in range(MAX_DEPTH):
        level = [below for one in level for below in (one.values() if is_object(one) else one if is_array(one) else ())]
        if not level:
            return document
    return None


def _internal(url: httpx2.URL) -> InternalAddress:
    return InternalAddress(f"{shown(url)} is inside of a network", is_refused=True)


def _literal(host: str) -> Address | None:
    """Return the address that a host is, if the host is an address in the usual form."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_local(address: Address) -> bool:
    return any(address in network for network in _LOOPBACK)


def _host(url: httpx2.URL) -> str:
    """Return the host of a URL as in DNS."""
    return url.raw_host.decode("ascii")


def _environment_proxy(url: httpx2.URL) -> str | None:
    proxies = urllib.request.getproxies()
    if is_loopback(url.host) or not proxies or urllib.request.proxy_bypass(url.host):
        return None
    return proxies.get(url.scheme) or proxies.get("all")


async def _resolve(host: str, port: int) -> list[str]:
    found = await anyio.getaddrinfo(host, port, type=1)
    return [str(one[4][0]) for one in found]
