"""Validation of Host and Origin headers (DNS-rebinding protection)."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from mcp_bindgen.runtime.logs import log

from .errors import HttpError

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""Names of this machine."""

ANY_ADDRESS = ("0.0.0.0/0", "::/0")
"""All IP addresses. DNS rebinding needs a name: a page of another site cannot have an address as its name."""

_MAX_REMEMBERED = 64  # allowed hosts
_MAX_REPORTED = 10  # refused headers that the log names in each interval
_REPORT_INTERVAL = 60.0  # seconds
_MAX_SHOWN = 255  # characters of a refused header in the log
_AUTHORITY = re.compile(r"(?:(https?)://)?(\[[0-9a-f:.]+\]|[^\s\[\]:@/?#,]+)(?::([0-9]{0,5}))?")
_DEFAULT_PORTS = {"http": {80}, "https": {443}, "": {80, 443}}


class OriginPolicy:
    """Policy for the headers `Host` and `Origin`; `X-Forwarded-Host` is never read.

    Args:
        hosts: Hosts that clients may call: HOST, HOST:PORT, `*.DOMAIN`, an address or network, or `*`; by default
            the list in the environment variable `ALLOWED_HOSTS`, separated by commas, and without it this machine only.
        origins: Web pages that may call: the same, or http[s]://HOST[:PORT]; by default the list in
            `ALLOWED_ORIGINS`, and without it the pages of this machine and of the single hosts that are allowed.

    Raises:
        ValueError: A host or origin is malformed.
    """

    def __init__(self, hosts: Collection[str] | None = None, origins: Collection[str] | None = None) -> None:
        named = chosen_hosts(hosts)
        if origins is None:
            single = [name for name in named or () if "*" not in name and "/" not in name]
            origins = listed(os.environ.get("ALLOWED_ORIGINS", "")) or [*LOOPBACK, *single]
        self._hosts = _Allowed(LOOPBACK if named is None else named, with_scheme=False)
        self._origins = _Allowed(origins, with_scheme=True)
        self._remembered: set[bytes] = set()
        self._reported: set[bytes] = set()
        self._reports_end = 0.0

    def is_met(self, headers: Mapping[bytes, bytes]) -> bool:
        """Return True if the headers of a request, joined by name, are known to be allowed; if not, `check` decides."""
        return headers.get(b"host") in self._remembered and b"origin" not in headers

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Check the raw headers of a request; raises `HttpError` where they are not allowed."""
        sent = list(headers)
        hosts = [value for name, value in sent if name == b"host"]
        origins = [value for name, value in sent if name == b"origin"]
        for host in hosts or [b""]:
            if host not in self._remembered and not self._hosts.has(host):
                self._report(421, "host", host)
                raise HttpError(421, "this host is not served here")
        for origin in origins:
            if not self._origins.has(origin):
                self._report(403, "origin", origin)
                raise HttpError(403, "this origin is not allowed")
        if hosts and len(self._remembered) < _MAX_REMEMBERED:
            self._remembered.add(hosts[0])

    def _report(self, status: int, kind: str, value: bytes) -> None:
        """Log a refused header with the fix, each value once and only a few in each interval."""
        now = time.monotonic()
        if now >= self._reports_end:
            self._reported.clear()
            self._reports_end = now + _REPORT_INTERVAL
        shown = value[:_MAX_SHOWN]
        if len(self._reported) < _MAX_REPORTED and shown not in self._reported:
            self._reported.add(shown)
            log.warning(
                "%d: the %s %r is not allowed; if it is yours, allow it with --allowed-%s, the environment "
                "variable ALLOWED_%sS or allowed_%ss=",
                *(status, kind, shown.decode("latin-1"), kind, kind.upper(), kind),
            )


def listed(text: str) -> list[str]:
    """Return the names in a text with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def chosen_hosts(given: Collection[str] | None) -> Collection[str] | None:
    """Return the given hosts, else the hosts in the environment, else None."""
    return given if given is not None else listed(os.environ.get("ALLOWED_HOSTS", "")) or None


class _Allowed:
    """Allowed hosts or origins.

    Args:
        patterns: The patterns as text.
        with_scheme: True for origins, which begin with a scheme.
    """

    def __init__(self, patterns: Collection[str], *, with_scheme: bool) -> None:
        self._is_any = "*" in patterns
        self._with_scheme = with_scheme
        self._networks: list[IPv4Network | IPv6Network] = []
        self._names: list[tuple[str, str, int | None]] = []  # scheme or nothing, host or .DOMAIN, port or None
        for pattern in set(patterns) - {"*"}:
            try:
                self._networks.append(ip_network(pattern.strip("[]"), strict=False))
            except ValueError:
                self._names.append(_name(pattern, with_scheme))

    def has(self, caller: bytes) -> bool:
        """Return True if the value of a header is allowed."""
        if self._is_any:
            return True
        found = _AUTHORITY.fullmatch(caller.decode("latin-1").lower())
        if found is None or (found[1] is not None) != self._with_scheme:
            return False
        scheme, host = found[1] or "", _canonical(found[2])
        ports = {int(found[3])} if found[3] else _DEFAULT_PORTS[scheme]
        address = _address(host)
        return any(address in network for network in self._networks if address is not None) or any(
            allowed in ("", scheme)
            and (port is None or port in ports)
            and (host.endswith(name) if name.startswith(".") else host == name)
            for allowed, name, port in self._names
        )


def _name(pattern: str, with_scheme: bool) -> tuple[str, str, int | None]:
    text = pattern if pattern.isascii() else pattern.encode("idna").decode()
    found = _AUTHORITY.fullmatch(text.lower())
    domain = "" if found is None else found[2].removeprefix("*.")
    if found is None or not domain.strip(".") or "*" in domain or (found[1] and not with_scheme):
        raise ValueError(f"not a host: {pattern!r}; use HOST, HOST:PORT, *.DOMAIN, an address, a network or *")
    return found[1] or "", _canonical(found[2]).removeprefix("*"), int(found[3]) if found[3] else None


def _canonical(host: str) -> str:
    """Return a host without a final dot, and an IPv6 address in its short form."""
    address = _address(host) if host.startswith("[") else None
    return host.removesuffix(".") if address is None else f"[{address}]"


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None
