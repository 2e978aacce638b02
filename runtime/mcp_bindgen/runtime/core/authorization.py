"""Define what authorizes the HTTP requests of a client. Ours is in `auth/client`; yours can be anything."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import anyio


class Pauses:
    """Stop the clocks of a connection while somebody is asked, as a login takes minutes.

    Attributes:
        is_paused: Whether somebody is asked now.
        ended: Called when nobody is asked any more.
    """

    def __init__(self) -> None:
        self.ended: set[Callable[[], object]] = set()
        self._asked = 0
        self._left: dict[anyio.CancelScope, float] = {}

    @property
    def is_paused(self) -> bool:
        """Whether somebody is asked now."""
        return self._asked > 0

    @contextmanager
    def paused(self) -> Generator[None]:
        """Let no time pass for the limits that were set here."""
        self._asked += 1
        if self._asked == 1:
            now = anyio.current_time()
            for scope in self._left:
                self._left[scope], scope.deadline = scope.deadline - now, math.inf
        try:
            yield
        finally:
            self._asked -= 1
            if not self._asked:
                now = anyio.current_time()
                for scope, left in self._left.items():
                    scope.deadline = now + left
                for call in list(self.ended):
                    call()

    @contextmanager
    def move_on_after(self, seconds: float | None) -> Generator[anyio.CancelScope]:
        """Cancel the block after so many seconds in which nobody is asked; `None` for never."""
        with anyio.CancelScope() as scope:
            if seconds is not None:
                self._left[scope] = seconds
                if not self._asked:
                    scope.deadline = anyio.current_time() + seconds
            try:
                yield scope
            finally:
                self._left.pop(scope, None)

    def stop(self, scope: anyio.CancelScope) -> None:
        """Let a block go on for ever."""
        self._left.pop(scope, None)
        scope.deadline = math.inf

    @contextmanager
    def fail_after(self, seconds: float | None) -> Generator[anyio.CancelScope]:
        """Cancel the block as `move_on_after` does; raise `TimeoutError` then."""
        with self.move_on_after(seconds) as scope:
            yield scope
        if scope.cancelled_caught:
            raise TimeoutError


def pauses_of(transport: object) -> Pauses:
    """Return what stops the clocks of a connection; nothing ever does if its transport has no such thing."""
    found: Pauses | None = getattr(transport, "pauses", None)
    return Pauses() if found is None else found


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
