"""Validate Host and Origin headers (DNS-rebinding protection)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from ._call import HttpError

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The names of this machine to itself."""

_REMEMBERED = 64  # hosts that were found to be allowed
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^\s\[\]:@/]+)(:\d*)?")


class OriginPolicy:
    """Allow requests by their `Host` and `Origin` headers.

    Args:
        hosts: The hosts that may be called, HOST or HOST:PORT, or `*`; by default this machine only.
        origins: The web pages that may call, HOST, HOST:PORT or http[s]://HOST[:PORT], or `*`; by default those of
            this machine.
    """

    def __init__(self, hosts: Collection[str] | None = None, origins: Collection[str] | None = None) -> None:
        self._hosts = {name.lower() for name in (LOOPBACK if hosts is None else hosts)}
        self._origins = {name.lower() for name in (LOOPBACK if origins is None else origins)}
        self._remembered: set[bytes] = set()

    def check(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Check the headers of a request, as ASGI gives them; raises `HttpError` where it is not allowed."""
        headers = list(headers)
        hosts = [value for name, value in headers if name == b"host"]
        for host in hosts or [b""]:
            if host not in self._remembered and not _allowed(host, self._hosts):
                raise HttpError(421, "this host is not served here")
        for name, value in headers:
            if name == b"origin" and not _allowed(value, self._origins):
                raise HttpError(403, "this origin is not allowed")
        if hosts and len(self._remembered) < _REMEMBERED:
            self._remembered.add(hosts[0])


def _allowed(caller: bytes, names: Collection[str]) -> bool:
    """Tell whether `names` has [http[s]://]HOST[:PORT] as a whole, or its host, or everything."""
    text = caller.decode("latin-1").lower()
    found = _AUTHORITY.fullmatch(re.sub("^https?://", "", text))
    return "*" in names or text in names or (found is not None and (found[0] in names or found[1] in names))
