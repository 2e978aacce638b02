"""`mcp-bindgen logout`: revoke and delete a login."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from mcp_bindgen.runtime.protocol.errors import AuthorizationError
from mcp_bindgen.spec import BadInput

from .auth import server_entry, shown_url, warn, with_logins
from .terminal import say

if TYPE_CHECKING:
    from mcp_bindgen.auth.store import Store


def logout(
    server: Annotated[str | None, typer.Argument(help="The URL of a server, or FILE.json#NAME.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Log out of all servers, and forget all clients.")] = False,
) -> None:
    """Log out of a server: revoke its tokens at the authorization server, if possible, and delete them.

    Examples:

    `mcp-bindgen logout https://example.com/mcp`

    `mcp-bindgen logout --all`
    """
    if (server is None) != everything:
        raise BadInput("the server is missing", fix="name one of `mcp-bindgen auth list`, or give --all")
    entry = server_entry(server) if server is not None else None
    known = entry.auth if entry is not None and entry.auth is not None and entry.auth.type == "oauth" else None

    async def work(store: Store) -> tuple[int, list[AuthorizationError], Sequence[AuthorizationError]]:
        from mcp_bindgen.host.logins import damaged, forget_all, log_out

        done = await (forget_all(store) if entry is None else log_out(entry.url or "", known, store))
        return *done, await damaged(store)

    count, problems, left = with_logins(work)
    from mcp_bindgen.auth.client.tokens import NotRevocable

    for problem in problems:
        say(f"warning: deleted here, but not revoked: {problem}", err=True)
    what = "all servers" if entry is None else shown_url(entry)
    say(f"Logged out of {what}." if count else f"There is no login to {what}.")
    warn(left)
    if (left and (entry is None or not count)) or not all(isinstance(problem, NotRevocable) for problem in problems):
        raise typer.Exit(1)
