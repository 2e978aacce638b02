"""Whose requests are served: a web page of somebody else's must not reach a server of this machine (DNS rebinding)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
"""The names of this machine to itself."""

_REMEMBERED = 64  # hosts that were found to be welcome
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^\s\[\]:@/]+)(:\d*)?")


class Guard:
    """Knows which `Host` and `Origin` headers are fine.

    Args:
        hosts: The hosts that may be called, HOST or HOST:PORT, or `*`.
        origins: The web pages that may call, HOST, HOST:PORT or http[s]://HOST[:PORT], or `*`.
    """

    def __init__(self, hosts: Collection[str] = LOOPBACK, origins: Collection[str] = LOOPBACK) -> None:
        self._hosts = {name.lower() for name in hosts}
        self._origins = {name.lower() for name in origins}
        self._welcome: set[bytes] = set()

    def refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        """The HTTP status and the reason why a request is refused; `None` when it is welcome.

        Args:
            headers: Its headers as ASGI gives them, names in lower case.
        """
        hosts: list[bytes] = []
        origins: list[bytes] = []
        for name, value in headers:
            if name == b"host":
                hosts.append(value)
            elif name == b"origin":
                origins.append(value)
        for host in hosts or [b""]:
            if host not in self._welcome and not _allowed(host.decode("latin-1"), self._hosts):
                return 421, "this host is not served here"
        for origin in origins:
            if not _allowed(origin.decode("latin-1"), self._origins):
                return 403, "this origin is not allowed"
        if hosts and len(self._welcome) < _REMEMBERED:
            self._welcome.add(hosts[0])
        return None


def _allowed(caller: str, names: Collection[str]) -> bool:
    """Whether `names` has [http[s]://]HOST[:PORT] as a whole, or its host, or everything."""
    if "*" in names:
        return True
    caller = caller.lower()
    found = _AUTHORITY.fullmatch(re.sub("^https?://", "", caller))
    return caller in names or (found is not None and (found[0] in names or found[1] in names))
