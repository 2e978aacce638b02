"""The base of generated clients, with what connects them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Self

from .connecting import TIMEOUT, connect
from .session import client
from .session.authorization import Auth
from .targets import Target


class Client(client.Client):
    """The base of generated clients: call what the server offers, override `on_...` for what it may ask."""

    @classmethod
    def connect(
        cls,
        target: Target,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Auth | None = None,
        timeout: float | None = TIMEOUT,
        exactly: bool = False,
    ) -> AbstractAsyncContextManager[Self]:
        """Make a client, connected for as long as the `async with` block lasts; see `connected`."""
        return cls().connected(target, headers=headers, auth=auth, timeout=timeout, exactly=exactly)

    def connected(
        self,
        target: Target,
        *,
        headers: Mapping[str, str] | None = None,
        auth: Auth | None = None,
        timeout: float | None = TIMEOUT,
        exactly: bool = False,
    ) -> AbstractAsyncContextManager[Self]:
        """Connect this client: both sides know each other when the block begins, all is closed when it ends.

        A server of another revision is spoken to over a bridge; `wire_revision` says which one it speaks.

        Args:
            target: A URL, a command line, its words, an entry of an `mcpServers` file, or a transport.
            headers: HTTP headers to send with each request.
            auth: Authorizes requests to a URL, such as `OAuth()`.
            timeout: Seconds that connecting may take in all; `None` for no limit.
            exactly: Speak this client's revision and no other.

        Raises:
            UnsupportedRevision: The server speaks no revision that a bridge leads to, or not `exactly` this one.
            ConnectionClosed: The server is gone before the handshake is over, or that takes too long.
        """
        return connect(target, self, headers=headers, auth=auth, timeout=timeout, exactly=exactly)
