"""Fetch documents from addresses that others name, without being led astray.

A server names the URL of its metadata, and that names further ones: each may point into the network that this program
stands in (server-side request forgery; MCP, "Security Best Practices"; RFC 9728, section 7.7). So a host is resolved
once, its addresses are held against a table, and the connection goes to just the address that was checked.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
import urllib.request
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any
from urllib.parse import urlencode

import anyio
import httpx2
from pydantic_core import to_json

from mcp_bindgen.runtime.model.json_types import is_array, is_object, parse_json

LIMIT = 256 * 1024
"""The largest document that is read, in bytes, after it is unpacked."""

TIMEOUT = 15.0
"""Seconds that a fetch may take in all."""

DEPTH = 32
"""How deeply the arrays and objects of a document may be nested."""

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Iterable[str]]]

# Python's `is_global` differs between its versions and takes addresses for global that embed others (NAT64, 6to4).
_CLOSED_4 = [
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
]
_GLOBAL_6 = IPv6Network("2000::/3")  # all else is not for the internet, or embeds an IPv4 address
_CLOSED_6 = [IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "3fff::/20")]
_EMBEDS = {IPv6Network("::ffff:0:0/96"): 0, IPv6Network("64:ff9b::/96"): 0, IPv6Network("2002::/16"): 80}
_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]*|[0-9]+)")
_ENCODINGS = ("gzip", "deflate")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


class FetchError(Exception):
    """A document could not be fetched; the message names host and reason, and nothing secret.

    Attributes:
        is_temporary: Whether it may well work later: nothing was heard of the server, or it failed.
        is_refused: Whether nothing was sent, because the URL is not one to be fetched.
    """

    def __init__(self, reason: str, *, is_temporary: bool = False, is_refused: bool = False) -> None:
        super().__init__(reason)
        self.is_temporary = is_temporary
        self.is_refused = is_refused


@dataclass(frozen=True)
class Fetched:
    """A response.

    Attributes:
        status: Its status.
        headers: Its headers, whatever the case of their names.
        document: The JSON value that is its body; `None` if that is something else.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    document: Any = field(repr=False)

    @property
    def is_success(self) -> bool:
        """Tell whether the status is one of success."""
        return 200 <= self.status < 300

    @property
    def object(self) -> dict[str, Any] | None:
        """The document if it is a JSON object."""
        return self.document if is_object(self.document) else None


def is_public(address: Address) -> bool:
    """Tell whether an address is one of the internet, and not of some network, of this machine or of none."""
    if isinstance(address, IPv6Address):
        for network, shift in _EMBEDS.items():
            if address in network:
                return is_public(IPv4Address(int(address) >> shift & 0xFFFFFFFF))
        return address in _GLOBAL_6 and not any(address in network for network in _CLOSED_6)
    return not any(address in network for network in _CLOSED_4)


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine by its name alone: `localhost`, or a loopback address."""
    literal = _literal(host)
    return host.lower().rstrip(".") == "localhost" if literal is None else any(literal in one for one in _LOOPBACK)


def place(url: str | httpx2.URL) -> str:
    """Return a URL as it may be shown: without credentials, query and fragment."""
    try:
        parsed = httpx2.URL(url)
        return f"{parsed.scheme}://{parsed.netloc.decode('ascii')}{parsed.path}"
    except (httpx2.InvalidURL, ValueError):
        return "something that is no URL"


@dataclass(frozen=True)
class Fetcher:
    """Fetch documents: over https, or http on this machine, from public addresses and from trusted hosts.

    Redirects are not followed. Each fetch is a connection of its own, so that none is shared between hosts at one
    address.

    Attributes:
        trusted: Host names that somebody chose who may, such as the server that a user named: they may have any
            address.
        loopback: Whether this machine may be fetched from, as in development.
        verify: Whom to trust with TLS; by default who is trusted on this machine.
        proxy: The proxy to go through; by default what the environment names. It resolves host names itself, so only
            addresses that stand in a URL are held against the table then.
        timeout: Seconds that a fetch may take in all.
        limit: The largest body, in bytes, after it is unpacked.
        resolve: Finds the addresses of a host at a port.
    """

    trusted: frozenset[str] = frozenset()
    loopback: bool = False
    verify: ssl.SSLContext | None = None
    proxy: str | None = field(default=None, repr=False)
    timeout: float = TIMEOUT
    limit: int = LIMIT
    resolve: Resolve = field(default_factory=lambda: _resolve, repr=False)

    async def get_json(self, url: str, *, headers: Mapping[str, str] | None = None) -> Fetched:
        """Fetch a JSON document.

        Raises:
            FetchError: The URL must not be fetched, there is no whole answer in time, or it is too large, redirects, or
                is a success that is not JSON or nested too deeply.
        """
        return await self._fetch("GET", url, headers or {}, None)

    async def post_form(
        self, url: str, form: Mapping[str, str], *, headers: Mapping[str, str] | None = None
    ) -> Fetched:
        """Post a form, which is answered by a JSON document or by nothing; raise what `get_json` raises."""
        typed = {**(headers or {}), "content-type": "application/x-www-form-urlencoded"}
        return await self._fetch("POST", url, typed, urlencode(form).encode("ascii"))

    async def post_json(self, url: str, value: Any, *, headers: Mapping[str, str] | None = None) -> Fetched:
        """Post a JSON document, which is answered by another one; raise what `get_json` raises."""
        return await self._fetch("POST", url, {**(headers or {}), "content-type": "application/json"}, to_json(value))

    def check(self, url: str) -> httpx2.URL:
        """Return a URL that may be fetched, as far as the URL itself tells.

        Raises:
            FetchError: It is no URL, neither https nor http on this machine, or has credentials or a fragment.
        """
        try:
            parsed = httpx2.URL(url)
            host, port = _name(parsed), parsed.port
        except (httpx2.InvalidURL, ValueError):
            raise FetchError("what should be fetched is no URL", is_refused=True) from None
        problem = None
        if parsed.scheme not in ("https", "http") or not host:
            problem = "is not a URL of the web"
        elif parsed.userinfo or parsed.fragment or not 0 < (1 if port is None else port) < 65536:
            problem = "has credentials, a fragment or no usable port"
        elif _literal(host) is None and ("%" in host or _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2])):
            problem = "writes an address in a form that hides it"
        elif parsed.scheme == "http" and not is_loopback(host):
            problem = "is not https"
        elif self._is_inside(host):
            problem = "is an address inside of a network"
        if problem is not None:
            raise FetchError(f"{place(parsed)} {problem}", is_refused=True)
        return parsed

    def _is_inside(self, host: str) -> bool:
        """Tell whether a host may not be used by its name alone; a proxy, asked next, has its own localhost."""
        literal = _literal(host)
        if literal is None:
            return is_loopback(host) and not self.loopback
        return not self._may_use(host, literal)

    def _may_use(self, host: str, address: Address) -> bool:
        inside = any(address in network for network in _LOOPBACK)
        if is_loopback(host):
            return inside and self.loopback
        return is_public(address) or host.lower() in self.trusted

    async def _fetch(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None) -> Fetched:
        parsed = self.check(url)
        where = place(parsed)
        try:
            with anyio.fail_after(self.timeout):
                response, body = await self._exchange(method, parsed, headers, content)
        except TimeoutError:
            raise FetchError(f"{where} did not answer within {self.timeout:g} seconds", is_temporary=True) from None
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError, ValueError) as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise FetchError(f"no answer from {where}: {reason}", is_temporary=True) from None
        if response.status_code in _REDIRECTS:
            raise FetchError(f"{where} redirects, which is not followed")
        document = _document(body)
        if document is None and response.is_success and (body or method == "GET"):
            raise FetchError(f"{where} answered with something that is not JSON, or nested too deeply")
        return Fetched(response.status_code, response.headers, document)

    async def _exchange(
        self, method: str, url: httpx2.URL, headers: Mapping[str, str], content: bytes | None
    ) -> tuple[httpx2.Response, bytes]:
        sent = {"accept": "application/json", "accept-encoding": "identity", **headers}
        proxy = self.proxy or _environment_proxy(url)
        async with httpx2.AsyncClient(
            verify=self.verify or _certificates(), proxy=proxy, trust_env=False, timeout=self.timeout
        ) as client:
            failure: Exception | None = None
            for pinned in [url] if proxy else await self._pinned(url):
                request = client.build_request(
                    method, pinned, headers={**sent, "host": url.netloc.decode("ascii")}, content=content
                )
                if pinned is not url:
                    request.extensions = {**request.extensions, "sni_hostname": _name(url)}
                try:
                    response = await client.send(request, stream=True, follow_redirects=False)
                except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                    failure = error
                    continue
                try:
                    return response, await self._body(response, place(url))
                finally:
                    await response.aclose()
            raise failure or FetchError(f"{place(url)} has no address")

    async def _pinned(self, url: httpx2.URL) -> list[httpx2.URL]:
        """Return the URL with each address of its host that may be connected to in place of its name."""
        if _literal(_name(url)) is not None:
            return [url]
        port = url.port or (443 if url.scheme == "https" else 80)
        found = [ipaddress.ip_address(text) for text in await self.resolve(_name(url), port)]
        usable = [address for address in found if self._may_use(_name(url), address)]
        if found and not usable:
            raise FetchError(f"{place(url)} is inside of a network", is_refused=True)
        return [url.copy_with(host=str(address)) for address in dict.fromkeys(usable)]

    async def _body(self, response: httpx2.Response, where: str) -> bytes:
        """Read a body within the limit, whichever way it is packed."""
        packed = bytearray()
        async for part in response.aiter_raw():
            packed += part
            if len(packed) > self.limit:
                raise FetchError(f"{where} answered with more than {self.limit} bytes")
        encodings = [one.strip().lower() for one in response.headers.get("content-encoding", "").split(",")]
        encodings = [one for one in encodings if one not in ("", "identity")]
        if not encodings:
            return bytes(packed)
        if len(encodings) > 1 or encodings[0] not in _ENCODINGS:
            raise FetchError(f"{where} answered in an encoding that nobody asked for")
        try:
            body = zlib.decompressobj(32 + zlib.MAX_WBITS).decompress(bytes(packed), self.limit + 1)
        except zlib.error:
            raise FetchError(f"{where} answered with what cannot be unpacked") from None
        if len(body) > self.limit:
            raise FetchError(f"{where} answered with more than {self.limit} bytes")
        return body


def _document(body: bytes) -> Any:
    """Return a JSON document; `None` for anything else."""
    try:
        document = parse_json(body)
    except ValueError:
        return None
    level = [document]
    for _ in range(DEPTH):
        level = [child for value in level for child in _children(value)]
        if not level:
            return document
    return None


def _children(value: Any) -> Iterable[Any]:
    if is_object(value):
        return value.values()
    return value if is_array(value) else ()


def _literal(host: str) -> Address | None:
    """Return the address that a host is, if it is one in the usual form."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _name(url: httpx2.URL) -> str:
    """Return the host of a URL, as it stands in DNS."""
    return url.raw_host.decode("ascii")


def _environment_proxy(url: httpx2.URL) -> str | None:
    proxies = urllib.request.getproxies()
    if is_loopback(url.host) or not proxies or urllib.request.proxy_bypass(url.host):
        return None
    return proxies.get(url.scheme) or proxies.get("all")


async def _resolve(host: str, port: int) -> list[str]:
    found = await anyio.getaddrinfo(host, port, type=1)
    return [str(one[4][0]) for one in found]


@cache
def _certificates() -> ssl.SSLContext:
    return httpx2.create_ssl_context()
