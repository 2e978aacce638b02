"""A protected MCP server with the authorization server of `authorization_world`, both in threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from anyio.from_thread import start_blocking_portal

from mcp_bindgen.runtime import Identity
from tests.harness.authorization_world import World, visit, world
from tests.harness.protected import Protected, running


@dataclass
class Guarded:
    """A protected MCP server and its authorization server.

    Attributes:
        world: The authorization server; its MCP server is not used.
        server: The MCP server: `whoami` needs `mcp:read`, `delete` needs `mcp:write`.
    """

    world: World
    server: Protected

    @property
    def url(self) -> str:
        """URL of the MCP server."""
        return self.server.url

    def secrets(self) -> list[str]:
        """Return all tokens that must not appear in any output."""
        return [*self.world.tokens, *self.world.refreshes]


class _Verifier:
    """Verifier of the tokens of the authorization server."""

    def __init__(self, world: World) -> None:
        self.issuers = (world.issuer,)
        self._world = world

    async def verify(self, token: str, resource: str) -> Identity | None:
        known: Any = self._world.tokens.get(token)
        if known is None or known["family"] not in self._world.families:
            return None
        scopes = frozenset(known["scope"].split())
        return Identity(issuer=self._world.issuer, subject="ada", client=known["client"], scopes=scopes)


@contextmanager
def guarded() -> Iterator[Guarded]:
    """Run both servers."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(world()) as made,
        running(_Verifier(made), basic_scopes=["mcp:read"]) as server,
    ):
        yield Guarded(made, server)


class Browser:
    """Browser of a user who agrees to everything.

    Attributes:
        visited: URLs that were opened.
    """

    def __init__(self) -> None:
        self.visited: list[str] = []

    def open(self, url: str) -> bool:
        """Open a URL in a background thread; the last redirect leads back to the program."""
        self.visited.append(url)
        threading.Thread(target=lambda: visit(visit(url))).start()
        return True
