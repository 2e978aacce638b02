"""`mcp-bindgen auth`: list logins; functions that the commands about logins share."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from mcp_bindgen.host.authorization import MISSING
from mcp_bindgen.host.configuration import Entry
from mcp_bindgen.runtime.logs import harmless
from mcp_bindgen.runtime.protocol.errors import AuthorizationError, ConnectionClosed, ProtocolError
from mcp_bindgen.spec import BadInput

from .groups import Commands
from .options import Json
from .output import print_json, print_table
from .servers import named
from .terminal import say

if TYPE_CHECKING:
    from mcp_bindgen.auth.store import Store
    from mcp_bindgen.host.logins import Kept

T = TypeVar("T")

auth = Commands("Show stored logins.")


@auth.command("list")
def list_(as_json: Json = False) -> None:
    """List logins and registered clients, without tokens and other secrets.

    Examples:

    `mcp-bindgen auth list`

    `mcp-bindgen auth list --json`
    """

    async def work(store: Store) -> tuple[list[Kept], Sequence[AuthorizationError]]:
        from mcp_bindgen.host.logins import damaged, kept

        return await kept(store), await damaged(store)

    found, problems = with_logins(work)
    warn(problems)
    if as_json:
        print_json([_json(one) for one in found])
    elif found:
        rows = [
            [one.resource or "-", one.issuer, one.client, " ".join(one.scopes) or "-", _expiry(one)] for one in found
        ]
        print_table(["SERVER", "ISSUER", "CLIENT", "SCOPES", "EXPIRES"], rows)
    else:
        say("There are no logins.", err=True)


def _json(one: Kept) -> dict[str, Any]:
    """Return a login as JSON."""
    expires = None if one.expires_at is None else datetime.fromtimestamp(one.expires_at, UTC).isoformat("T", "seconds")
    return {
        "server": one.resource,
        "issuer": one.issuer,
        "client": one.client,
        "scopes": list(one.scopes),
        "expires": expires,
        "refreshable": one.refreshable,
        "bound": one.is_bound,
    }


def _expiry(one: Kept) -> str:
    if one.resource is None:
        return "-"
    time = "unknown" if one.expires_at is None else shown_time(one.expires_at)
    return f"{time}, then renewed" if one.refreshable else time


def shown_time(seconds: float) -> str:
    """Return a time, in seconds since 1970, as local date and time."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M %Z}"


def warn(problems: Sequence[AuthorizationError]) -> None:
    """Print each damaged record; the message includes the fix."""
    for problem in problems:
        say(f"warning: {problem}", err=True)


# --- for other commands ---------------------------------------------------------------------------------------


def with_logins(work: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
    """Run a function with the store of logins, and return its result.

    Raises:
        BadInput: The function failed; the message includes the fix.
    """
    if find_spec("joserfc") is None or find_spec("keyring") is None or find_spec("httpx2") is None:
        raise BadInput(MISSING)
    from mcp_bindgen.auth.keyring_store import default_store

    try:
        return anyio.run(work, default_store())
    except (AuthorizationError, ConnectionClosed, ProtocolError) as error:
        raise BadInput(harmless(str(error))) from None


def server_entry(server: str) -> Entry:
    """Return the entry of a server that takes logins."""
    entry = named(server).entry
    if entry.url is None:
        raise BadInput(f"{server!r} is a program, and logins need a URL", fix="pass credentials with --env")
    if entry.has_credentials:
        raise BadInput("the URL or the headers contain credentials already", fix="remove them to log in")
    return entry


def shown_url(entry: Entry) -> str:
    """Return the URL of an entry without secrets."""
    return harmless((entry.url or "").partition("?")[0])
