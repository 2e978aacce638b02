"""`mcp-bindgen auth`: what is kept of logins, and what all commands about them need."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import anyio
import typer

from mcp_bindgen.host.auth_settings import MISSING
from mcp_bindgen.host.configuration import Entry
from mcp_bindgen.runtime.logs import harmless
from mcp_bindgen.runtime.protocol.errors import AuthorizationError, ConnectionClosed, ProtocolError
from mcp_bindgen.spec import BadInput

from .live import entry_of
from .output import print_json, print_table
from .terminal import say

if TYPE_CHECKING:
    from mcp_bindgen.auth.store import Store
    from mcp_bindgen.host.logins import Kept

T = TypeVar("T")

auth = typer.Typer(help="Logins that are kept.", no_args_is_help=True)


@auth.command("list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show what is kept: logins and the clients that are registered for them; never a token or another secret.

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
    """Return what is said of something that is kept, for machines."""
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
    time = "not known" if one.expires_at is None else shown_time(one.expires_at)
    return f"{time}, then renewed" if one.refreshable else time


def shown_time(seconds: float) -> str:
    """Return a time, in seconds since 1970, as people here write it."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M %Z}"


def warn(problems: Sequence[AuthorizationError]) -> None:
    """Tell what is kept and cannot be read, in a line for each; the message says what to do."""
    for problem in problems:
        say(f"warning: {problem}", err=True)


# --- for other commands ---------------------------------------------------------------------------------------


def with_logins(work: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
    """Do something with what is kept; whatever goes wrong is bad input.

    Raises:
        BadInput: It went wrong; the message says what to do.
    """
    if find_spec("joserfc") is None or find_spec("keyring") is None or find_spec("httpx2") is None:
        raise BadInput(MISSING)
    from mcp_bindgen.auth.keyring_store import default_store

    try:
        return anyio.run(work, default_store())
    except (AuthorizationError, ConnectionClosed, ProtocolError) as error:
        raise BadInput(harmless(str(error))) from None


def server_entry(server: str) -> Entry:
    """Return the entry of a server that one can log in to."""
    entry = entry_of(server)
    if entry.url is None:
        raise BadInput(f"{server!r} is a program, and logins are for URLs", fix="its credentials come from --env")
    if entry.has_credentials:
        raise BadInput("the URL or the headers have credentials, which take the place of a login")
    return entry


def shown_url(entry: Entry) -> str:
    """Return the URL of an entry as it may be shown."""
    return harmless((entry.url or "").partition("?")[0])
