"""`mcp-bindgen dev`: a server that starts again when its code changes, and a page to try it on."""

from __future__ import annotations

import secrets
import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated

import anyio
import typer

from mcp_bindgen.cli.options import Env, Port, Revision, Server, Timeout
from mcp_bindgen.cli.terminal import say
from mcp_bindgen.runtime.lazy import require
from mcp_bindgen.spec import BadInput

from .servers import named, public


def dev(
    server: Server,
    port: Port = 0,
    watch: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR", help="Folder whose changes restart the server; by default the folder of the server."
        ),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    revision: Revision = None,
    timeout: Timeout = 30,
    env: Env = None,
) -> None:
    """Run a server while you work on it, with a page that lists, calls and shows every message.

    The server restarts when a source file changes. Only this machine can open the page, and only with the token in its
    address, which is new each time.

    Examples:

    `mcp-bindgen dev weather --open` runs the project in the folder `weather`.

    `mcp-bindgen dev server.py --env API_KEY=test`

    `mcp-bindgen dev 'npx -y @modelcontextprotocol/server-everything' --port 8123`
    """
    require("mcp-bindgen dev", "starlette", "uvicorn", "watchfiles", extra="inspector")
    from .dev_server import Bench, serve_page

    found = named(server, env or [])
    watched = [Path(one) for one in watch or [found.source]]
    for one in watched:
        if not one.is_dir():
            raise BadInput("there is no such folder", file=one, fix="give --watch a folder")
    bench = Bench(public(server), found, watched, revision, timeout, secrets.token_urlsafe(32))

    def ready(url: str) -> None:
        say(f"{public(server)} is on {url}")
        say("Ctrl-C ends it.")
        if open_:
            webbrowser.open(_link_page(Path(private), url).as_uri())

    with tempfile.TemporaryDirectory(prefix="mcp-bindgen-") as private:
        anyio.run(serve_page, bench, port, ready)


def _link_page(folder: Path, url: str) -> Path:
    """Write a page that leads to `url`: other users see the command line of a browser, but not this file."""
    page = folder / "open.html"
    page.touch(0o600)
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0;url={url}">'
        f'<title>mcp-bindgen dev</title><a href="{url}">Open the page</a>\n',
        "utf-8",
    )
    return page
