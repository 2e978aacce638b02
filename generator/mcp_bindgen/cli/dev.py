"""`mcp-bindgen dev`: a server that starts again when its code changes, and a page to try it on."""

from __future__ import annotations

import secrets
import shlex
import sys
import tempfile
import webbrowser
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import anyio
import typer

from mcp_bindgen.host.configuration import command_words
from mcp_bindgen.spec import BadInput

from .live import Env, Revision, Timeout, entry_of
from .terminal import say


def dev(
    server: Annotated[
        str, typer.Argument(help="A module, a file of Python, a project's folder, or a command in quotes.")
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The page's port on this machine; 0 for any.")] = 0,
    watch: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A folder whose files start it again; by default that of the server."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    revision: Revision = None,
    timeout: Timeout = 30,
    env: Env = None,
) -> None:
    """Run a server while you work on it, with a page that lists, calls and shows every message.

    It starts again when a file changes. The page is for this machine only, and its address has a token that is new each
    time: who does not know it sees nothing.

    Examples:

    `mcp-bindgen dev weather --open` runs the project in the folder `weather`.

    `mcp-bindgen dev server.py --env API_KEY=test`

    `mcp-bindgen dev 'npx -y @modelcontextprotocol/server-everything' --port 8123`
    """
    missing = [name for name in ("starlette", "uvicorn", "watchfiles") if find_spec(name) is None]
    if missing:
        raise BadInput(f"{missing[0]} is not installed", fix="run: pip install 'mcp-bindgen[inspector]'")
    from .dev_server import Bench, serve_page

    words, settings, folder = _command(server)
    watched = [Path(one) for one in watch or [folder]]
    for one in watched:
        if not one.is_dir():
            raise BadInput("is no folder to watch", file=one)
    entry = entry_of(shlex.join(words), [*settings, *(env or [])])
    bench = Bench(server, entry, watched, revision, timeout, secrets.token_urlsafe(32))

    def ready(url: str) -> None:
        say(f"{server} is on {url}")
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


def _command(server: str) -> tuple[list[str], list[str], Path]:
    """Return the words that start a server, what its environment needs, and the folder of its code."""
    path = Path(server)
    if path.is_dir():
        from mcp_bindgen.scaffold.project import Project

        project = Project.read(path)
        source = project.source.parent.resolve()
        return [sys.executable, "-m", project.package], [f"PYTHONPATH={source}"], project.source
    if path.suffix == ".py" and path.is_file():
        return [sys.executable, server], [], path.parent
    if all(part.isidentifier() for part in server.split(".")) and _is_module(server):
        return [sys.executable, "-m", server], [f"PYTHONPATH={Path.cwd()}"], Path.cwd()
    try:
        return command_words(server), [], Path.cwd()
    except ValueError as error:
        raise BadInput(str(error)) from None


def _is_module(name: str) -> bool:
    """Tell whether a module can be imported from here."""
    place = Path.cwd().joinpath(*name.split("."))
    return place.with_suffix(".py").is_file() or place.is_dir() or find_spec(name.partition(".")[0]) is not None
