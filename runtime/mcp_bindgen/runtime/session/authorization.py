"""Define what authorizes the HTTP requests of a client. Ours is in `auth/client`; yours can be anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..concurrency import Pauses


class Attempt(Protocol):
    """One request, which may have to be sent more than once."""

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        """Return the headers that authorize the request, as it is sent this time.

        Raises:
            AuthorizationError: There is no way to authorize it.
        """
        ...

    async def again(self, url: str, status: int, headers: Sequence[tuple[str, str]]) -> bool:
        """Take note of a response; tell whether to send the request again.

        Args:
            url: Where the response came from.
            status: Its status.
            headers: Its headers, names in any case, those that are repeated more than once.

        Raises:
            AuthorizationError: The server wants what cannot be had.
        """
        ...


class Authorizer(Protocol):
    """Authorizes the requests to one server, over any number of connections."""

    @property
    def pauses(self) -> Pauses:
        """Stops the clocks while somebody is asked."""
        ...

    @property
    def extensions(self) -> Mapping[str, Any]:
        """The extensions of the protocol that it uses."""
        ...

    def attempt(self, *, may_ask: bool) -> Attempt:
        """Begin a request.

        Args:
            may_ask: Whether it is worth a login; what only accompanies other requests is not.
        """
        ...


class Auth(Protocol):
    """Knows how to get at servers; what `connect` takes as `auth`."""

    def authorizer(self, url: str) -> Authorizer:
        """Return what authorizes requests to a server, the same one each time."""
        ...
