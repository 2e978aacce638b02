"""Authorization of HTTP requests: `mcp_bindgen.auth` has implementations of these protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mcp_bindgen.runtime.protocol.transport import AskUser, LogIn


async def ask_at_once(log_in: LogIn) -> bool:
    """Run a login where no time limit runs. It is an `AskUser`."""
    return await log_in()


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
            headers: Its headers, names in any case; repeated headers occur repeatedly.

        Raises:
            AuthorizationError: The server asks for an authorization that is unavailable.
        """
        ...


class Authorizer(Protocol):
    """Authorizes the requests to one server, over any number of connections."""

    @property
    def extensions(self) -> Mapping[str, Any]:
        """The extensions of the protocol that it uses."""
        ...

    def attempt(self, ask_user: AskUser | None) -> Attempt:
        """Begin a request.

        Args:
            ask_user: Runs a login; `None` if the request is not worth one, as it only accompanies another request.
        """
        ...
