"""`mcp-bindgen login`, `logout` and `auth`: logins to servers that require authorization."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import anyio
import typer

from mcp_bindgen.cli.options import Commands, Json, Port
from mcp_bindgen.cli.output import print_json, print_table
from mcp_bindgen.cli.terminal import say, write
from mcp_bindgen.host.authorization import AuthSettings
from mcp_bindgen.host.configuration import Entry
from mcp_bindgen.runtime.lazy import require
from mcp_bindgen.runtime.logs import harmless
from mcp_bindgen.runtime.protocol.errors import AuthorizationError, ConnectionClosed, ProtocolError
from mcp_bindgen.runtime.transports.pipes import on_thread
from mcp_bindgen.spec.errors import BadInput, locating

from .servers import named, public, redacted

if TYPE_CHECKING:
    from mcp_bindgen.auth.client.login import Browser
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

    found, problems = _with_logins(work)
    _warn(problems)
    if as_json:
        print_json([_json(one) for one in found])
    elif found:
        rows = [
            [_server(one) or "-", one.issuer, one.client, " ".join(one.scopes) or "-", _expiry(one)] for one in found
        ]
        print_table(["SERVER", "ISSUER", "CLIENT", "SCOPES", "EXPIRES"], rows)
    else:
        say("There are no logins.", err=True)


def _server(one: Kept) -> str | None:
    """Return the URL of the server of a login, with its query, which may name a tenant, but without secrets."""
    return one.resource and redacted([one.resource], all_settings=False)[0]


def _json(one: Kept) -> dict[str, Any]:
    """Return a login as JSON."""
    expires = None if one.expires_at is None else datetime.fromtimestamp(one.expires_at, UTC).isoformat("T", "seconds")
    return {
        "server": _server(one),
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
    time = "unknown" if one.expires_at is None else _shown_time(one.expires_at)
    return f"{time}, then renewed" if one.refreshable else time


def _shown_time(seconds: float) -> str:
    """Return a time, in seconds since 1970, as local date and time."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M %Z}"


def _warn(problems: Sequence[AuthorizationError]) -> None:
    """Print each damaged record; the message includes the fix."""
    for problem in problems:
        say(f"warning: {problem}", err=True)


def _with_logins(work: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
    """Run a function with the store of logins, and return its result.

    Raises:
        BadInput: The function failed; the message includes the fix.
    """
    require("a login", "joserfc", "keyring", "httpx2", extra="auth")
    from mcp_bindgen.auth.keyring_store import default_store

    try:
        return anyio.run(work, default_store())
    except (AuthorizationError, ConnectionClosed, ProtocolError) as error:
        raise BadInput(harmless(str(error))) from None


def _server_entry(server: str) -> Entry:
    """Return the entry of a server that takes logins."""
    entry = named(server).entry
    if entry.url is None:
        raise BadInput(f"{server!r} is a program, and logins need a URL", fix="pass credentials with --env")
    if entry.has_credentials:
        raise BadInput("the URL or the headers contain credentials already", fix="remove them to log in")
    return entry


def _shown_url(entry: Entry) -> str:
    """Return the URL of an entry without secrets."""
    return public(entry.url or "")


SECRET = "MCP_BINDGEN_CLIENT_SECRET"  # noqa: S105 - the name of a variable
"""Environment variable with the secret of a client; other users can read command lines, but not variables."""

Server = Annotated[str, typer.Argument(help="The URL of a server, or FILE.json#NAME.")]


def login(
    server: Server,
    client_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            envvar="MCP_BINDGEN_CLIENT_ID",
            help=f"Id of a registered client; {SECRET} holds its secret, if it has one.",
        ),
    ] = None,
    client_secret_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the secret of the client.")
    ] = None,
    client_metadata_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of the client's metadata document.")
    ] = None,
    issuer: Annotated[
        str | None, typer.Option(metavar="URL", help="Authorization server to use; it may have a private address.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(metavar="SCOPES", help="Scopes to request; by default those that the server names."),
    ] = None,
    browser: Annotated[
        bool,
        typer.Option("--browser/--no-browser", help="Use the browser of this machine, or of another device."),
    ] = True,
    port: Port = 0,
    redirect_uri: Annotated[
        str | None, typer.Option(metavar="URL", help="Redirect URI on this machine, in place of --port.")
    ] = None,
    dpop: Annotated[
        bool | None,
        typer.Option("--dpop/--no-dpop", help="Bind tokens to a key (DPoP); by default if both servers support it."),
    ] = None,
    omit_resource: Annotated[
        bool, typer.Option("--omit-resource", help="Omit the resource parameter, for an --issuer that rejects it.")
    ] = False,
    ignore_final_slash: Annotated[
        bool, typer.Option("--ignore-final-slash", help="Accept the --issuer with and without a final slash.")
    ] = False,
    assume_pkce: Annotated[
        bool, typer.Option("--assume-pkce", help="Use PKCE although the metadata of the --issuer does not name it.")
    ] = False,
) -> None:
    """Log in to a server over HTTP; all commands that connect to the server use the login.

    Logins are stored in the keyring, or without one in files that only you can read. The browser returns to --port.

    Examples:

    `mcp-bindgen login https://example.com/mcp`

    `mcp-bindgen login mcp.json#weather --scope 'weather:read weather:write'`

    `mcp-bindgen login https://example.com/mcp --no-browser` prints an address to open on another device.

    `mcp-bindgen login https://example.com/mcp --client-id abc --client-secret-file secret.txt --port 8765`
    """
    entry = _server_entry(server)
    asked = entry.auth or AuthSettings()
    if asked.type != "oauth":
        raise BadInput(f"{server} uses {asked.type} and needs no login", fix="call it directly")
    if port and redirect_uri is not None:
        raise BadInput("--port and --redirect-uri exclude each other", fix="leave one of them out")
    given: dict[str, Any] = {
        "clientId": client_id,
        "clientSecret": _secret(client_secret_file) if client_id or client_secret_file else None,
        "clientMetadataUrl": client_metadata_url,
        "issuer": issuer,
        "scopes": [one for words in scope for one in words.split()] if scope else None,
        "redirectUri": redirect_uri if not port else f"http://127.0.0.1:{port}/callback",
        "dpop": dpop,
        "omitResource": omit_resource or None,
        "assumePkce": assume_pkce or None,
        "ignoreFinalSlash": ignore_final_slash or None,
    }
    with locating(None, ValueError):
        settings = AuthSettings.read(asked.written() | {name: value for name, value in given.items() if value})
    settings = settings if dpop is None else replace(settings, dpop=dpop)

    async def work(store: Store) -> Kept | None:
        from mcp_bindgen.auth.client.login import Headless
        from mcp_bindgen.host.logins import log_in

        return await log_in(entry, settings, _in_browser(server) if browser else Headless(_tell, _line), store)

    found = _with_logins(work)
    if found is None:
        say(f"{_shown_url(entry)} requires no login.")
        return
    scopes = f" with {' '.join(found.scopes)}" if found.scopes else ""
    say(f"Logged in to {_shown_url(entry)} at {found.issuer}{scopes}, {_lasting(found)}.")


def _lasting(one: Kept) -> str:
    if one.refreshable:
        return "renewed automatically"
    return "until the server ends it" if one.expires_at is None else f"until {_shown_time(one.expires_at)}"


def _secret(file: Path | None) -> str | None:
    """Return the secret of the client, from a file or the environment."""
    if file is None:
        return os.environ.get(SECRET) or None
    try:
        found = file.read_text("utf-8-sig").strip()
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "the file is not text"
        raise BadInput(f"cannot be read: {why}", file=file) from None
    if not found:
        raise BadInput("the file is empty", file=file, fix="write the secret of the client into it")
    return found


def _tell(text: str) -> None:
    write(f"{text}\n", err=True)


def _in_browser(server: str) -> Browser:
    from mcp_bindgen.auth.client.login import Browser

    usual = Browser().open

    def open_(url: str) -> bool:
        if usual(url):
            _tell(f"Log in with your browser. If it does not show the page, visit:\n{url}")
            return True
        raise AuthorizationError(
            f"no browser could be opened; run: mcp-bindgen login {shlex.quote(server)} --no-browser"
        )

    return Browser(open=open_)


async def _line(prompt: str) -> str:
    """Return a line from stdin; Ctrl-C ends the command while it waits."""
    write(prompt, err=True)
    found = await on_thread(_read_line)
    if not found:
        raise AuthorizationError("no address was pasted")
    return found.decode("utf-8", "replace")


def _read_line() -> bytes:
    found = b""
    with suppress(OSError, ValueError):
        while not found.endswith(b"\n") and (byte := os.read(sys.stdin.fileno(), 1)):
            found += byte
    return found


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
    entry = _server_entry(server) if server is not None else None
    known = entry.auth if entry is not None and entry.auth is not None and entry.auth.type == "oauth" else None

    async def work(store: Store) -> tuple[int, list[AuthorizationError], Sequence[AuthorizationError]]:
        from mcp_bindgen.host.logins import damaged, forget_all, log_out

        done = await (forget_all(store) if entry is None else log_out(entry.url or "", known, store))
        return *done, await damaged(store)

    count, problems, left = _with_logins(work)
    from mcp_bindgen.auth.client.tokens import NotRevocable

    for problem in problems:
        say(f"warning: deleted here, but not revoked: {problem}", err=True)
    what = "all servers" if entry is None else _shown_url(entry)
    say(f"Logged out of {what}." if count else f"There is no login to {what}.")
    _warn(left)
    if (left and (entry is None or not count)) or not all(isinstance(problem, NotRevocable) for problem in problems):
        raise typer.Exit(1)
