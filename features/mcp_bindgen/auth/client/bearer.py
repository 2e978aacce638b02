"""Tokens that the program has already: API keys, or tokens of another library."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from mcp_bindgen.runtime.pauses import Pauses
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from ..metadata import check_confidential, check_same_origin

Secret = str | Callable[[], str | Awaitable[str]]
"""A token, or a function that returns a fresh one."""

_TOKEN = re.compile(r"[\x21-\x7e]+")


class Bearer:
    """Send a token with each request to a server, and to no other server. It is an `Auth`.

    Args:
        token: The token; or a function that returns it, which is called again when the server refuses the token.
    """

    def __init__(self, token: Secret) -> None:
        self._token = token
        self._authorizers: dict[str, _Authorizer] = {}

    def authorizer(self, url: str) -> _Authorizer:
        """Return the authorizer of the requests to a server.

        Raises:
            AuthorizationError: The connection would not be encrypted.
        """
        check_confidential(url)
        return self._authorizers.setdefault(url, _Authorizer(self._token, url))


class _Authorizer:
    """Authorizer of the requests to one server. It is an `Authorizer`."""

    extensions: Mapping[str, Any] = {}

    def __init__(self, token: Secret, url: str) -> None:
        self.pauses: Pauses = Pauses()
        self.url = url
        self.token: str | None = None
        self._secret = token

    def attempt(self, *, may_ask: bool) -> _Attempt:
        return _Attempt(self)

    async def fetch(self, refused: str | None) -> str:
        """Return the token; a new token, if possible, in place of the refused token."""
        if self.token is None or self.token == refused:
            with self.pauses.paused():
                self.token = await read_secret(self._secret)
        if _TOKEN.fullmatch(self.token) is None:
            raise AuthorizationError("the token has characters that cannot stand in a header")
        return self.token


class _Attempt:
    """A request, sent twice if there is a new token the second time. It is an `Attempt`."""

    def __init__(self, authorizer: _Authorizer) -> None:
        self._authorizer = authorizer
        self._sent: str | None = None
        self._is_second = False

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        check_same_origin(url, self._authorizer.url)
        self._sent = await self._authorizer.fetch(None)
        return {"authorization": f"Bearer {self._sent}"}

    async def again(self, url: str, status: int, headers: Sequence[tuple[str, str]]) -> bool:
        if status != 401 or self._is_second:
            return False
        self._is_second = True
        return await self._authorizer.fetch(self._sent) != self._sent


async def read_secret(secret: Secret) -> str:
    """Return a secret, from its function if it has one."""
    found = secret if isinstance(secret, str) else secret()
    return await found if inspect.isawaitable(found) else found
