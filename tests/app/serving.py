"""In-memory clients of apps and contracts."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from mcp_bindgen.app import App, Contract
from mcp_bindgen.runtime.session.endpoint import lifespans
from tests.harness.checked_connections import bindings, connected


def client_of(revision: str, *bases: type) -> Any:
    """Return an untyped client of a revision."""
    return type("Caller", (*bases, bindings(revision).Client), {})()


@asynccontextmanager
async def served(app: App | Contract, revision: str = "2025-11-25", *bases: type) -> AsyncGenerator[Any]:
    """Yield a client that is connected to an app; the app's lifespan runs meanwhile."""
    found = app.served()
    async with lifespans([found]), connected(client_of(revision, *bases), found) as connection:
        yield connection.client
