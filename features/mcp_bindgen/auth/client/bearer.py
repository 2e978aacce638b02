"""Send tokens that the program has from elsewhere: API keys, or what another library gets."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from mcp_bindgen.runtime.concurrency import Pauses
from mcp_bindgen.runtime.protocol.errors import AuthorizationError

from ..metadata import check_confidential, origin

Token = str | Callable[[], str | Awaitable[str]]

_TOKEN = re.compile(r"[\x21-\x7e]+")


class Bearer:
    """Send a token with each request to a server, and to no other. It is an `Auth`.

    Args:
        token: The token; or what returns one, which is called again when the server refuses the last one.
    """

    def __init__(self, token: Token) -> None:
        self._token = token
        self._authorizers: dict[str, _Authorizer] = {}

    def authorizer(self, url: str) -> _Authorizer:
        """Return what authorizes requests to a server.

        Raises:
            AuthorizationError: The token could be read on the way.
        """
        check_confidential(url)
        if url not in self._authorizers:
            self._authorizers[url] = _Authorizer(self._token, url)
        return self._authorizers[url]


class _Authorizer:
    """Authorizes the requests to one server. It is an `Authorizer`."""

    extensions: Mapping[str, Any] = {}

    def __init__(self, token: Token, url: str) -> None:
        self.pauses = Pauses()
        self.url = url
        self.token: str | None = None
        self._token = token

    def attempt(self, *, may_ask: bool) -> _Attempt:
        return _Attempt(self)

    async def fetch(self, refused: str | None) -> str:
        """Return a token; another one than the one that was refused, if that is possible."""
        if self.token is None or self.token == refused:
            with self.pauses.paused():
                found = self._token if isinstance(self._token, str) else self._token()
                self.token = await found if inspect.isawaitable(found) else found
        if _TOKEN.fullmatch(self.token) is None:
            raise AuthorizationError("the token has characters that cannot stand in a header")
        return self.token


class _Attempt:
    """One request, which is sent twice if there is another token the second time. It is an `Attempt`."""

    def __init__(self, authorizer: _Authorizer) -> None:
        self._authorizer = authorizer
        self._sent: str | None = None
        self._is_second = False

    async def headers(self, method: str, url: str) -> Mapping[str, str]:
        if origin(url) != origin(self._authorizer.url):
            raise AuthorizationError("a token is not sent to another server than the one that it is for")
        self._sent = await self._authorizer.fetch(None)
        return {"authorization": f"Bearer {self._sent}"}

    async def again(self, url: str, status: int, headers: Sequence[tuple[str, str]]) -> bool:
        if status != 401 or self._is_second:
            return False
        self._is_second = True
        return await self._authorizer.fetch(self._sent) != self._sent
