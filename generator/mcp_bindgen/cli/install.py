"""`mcp-bindgen install` and `uninstall`: add a server to the configuration of a host, and remove it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from mcp_bindgen.install.hosts import HOSTS, back_up, enter, place_of, remove
from mcp_bindgen.install.hosts import Server as HostServer
from mcp_bindgen.spec import BadInput, transaction
from mcp_bindgen.spec.transaction import Change

from .options import DryRun, Env, Force, Name, Server
from .servers import named
from .terminal import say, write_patch

_SECRET = re.compile(r"(?i)key|token|secret|passw|credential|auth")
_NAME = re.compile(r"[\w.-]{1,64}")


Host = Annotated[
    str | None, typer.Option("--host", metavar="HOST", help=f"Host that starts the server: {', '.join(HOSTS)}.")
]
File = Annotated[Path | None, typer.Option("--file", metavar="FILE", help="File with mcpServers, for any other host.")]
OfProject = Annotated[
    bool, typer.Option("--project", help="Use the host's file in this folder instead of the one in your home.")
]


def install(
    server: Server,
    host: Host = None,
    file: File = None,
    project: OfProject = False,
    name: Name = None,
    env: Env = None,
    force: Force = False,
    dry_run: DryRun = False,
) -> None:
    """Add a server to the configuration of a host; comments and other entries remain unchanged.

    A copy of the previous file is kept, with `.bak` added to its name. Secrets are never written: give `--env KEY`
    without a value, and the host takes the variable from its own environment.

    Examples:

    `mcp-bindgen install weather --host claude-desktop` adds the project in the folder `weather`.

    `mcp-bindgen install library.py --host cursor --project` adds the `App` in a file.

    `mcp-bindgen install 'npx -y @modelcontextprotocol/server-everything' --host vscode --project --dry-run`

    `mcp-bindgen install https://example.com/mcp --host cursor --name example`

    `mcp-bindgen install 'python server.py' --file mcp.json --env API_KEY`

    `mcp-bindgen uninstall weather --host claude-desktop` removes it.
    """
    place = place_named(host, file, project=project)
    found = _server(server, name, env or [])
    changes = enter(place, host, found, force=force)
    if not changes:
        say(f"{place}: {found.name} is up to date")
    else:
        put(place, changes, f"added {found.name}", dry_run=dry_run)


def place_named(host: str | None, file: Path | None, *, project: bool) -> Path:
    """Return the configuration file; raise `BadInput` if the command line names none, or two."""
    if (host is None) == (file is None):
        raise BadInput("the configuration file is not known", fix=f"give --host ({', '.join(HOSTS)}) or --file")
    if file is not None and project:
        raise BadInput("--file and --project exclude each other", fix="leave one of them out")
    place = file if host is None or file is not None else place_of(host, project=project)
    assert place is not None
    return place.resolve()  # a link to a file stays a link


def put(place: Path, changes: Mapping[str, Change], done: str, *, dry_run: bool) -> None:
    """Back up and change a file; or print the change."""
    if dry_run:
        write_patch(transaction.unified_diff(changes))
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    backup = back_up(place)
    transaction.put(place.parent, changes)
    say(f"{place}: {done}" + (f"; the previous file is {backup.name}" if backup is not None else ""))
    say("Restart the host, or reload its configuration.")


def _server(words: str, name: str | None, env: list[str]) -> HostServer:
    """Return the server that the command line names."""
    settings = dict(_setting(one) for one in env)
    found = named(words)
    entry, label = found.entry, _named(name, found.name)
    if entry.url is not None:
        parts = urlsplit(entry.url)
        if parts.username is not None or _SECRET.search(parts.query) or entry.headers or entry.auth is not None:
            raise BadInput(
                "the URL contains a secret, which must not be written"
                if entry.url == words
                else f"{words} has credentials, which must not be written",
                fix="remove it, and let the host log in",
            )
        if env:
            raise BadInput("--env needs a server that the host starts", fix="leave it out for URLs")
        return HostServer(label, url=entry.url)
    for argument in entry.args:
        option, equals, value = argument.partition("=")
        if equals and value and option.startswith("-") and _SECRET.search(option):
            raise BadInput(f"{option} is a secret, which must not be written", fix="pass it to the server with --env")
    where = shutil.which(entry.command or "")
    if where is None:
        raise BadInput(f"there is no program {entry.command!r}", fix="check the command")
    passed = [key for key, variable in found.references.items() if key == variable]
    written = {key: value for key, value in entry.env.items() if key not in passed}
    for key in written:
        _setting(f"{key}=")
    values = {key: value for key, value in settings.items() if value is not None}
    passed += [key for key, value in settings.items() if value is None]
    near = [str(Path(argument).resolve()) if Path(argument).is_file() else argument for argument in entry.args]
    return HostServer(label, str(Path(where).absolute()), near, {**written, **values}, passed)


def _setting(text: str) -> tuple[str, str | None]:
    key, equals, value = text.partition("=")
    if not key.isidentifier():
        raise BadInput(f"--env {key} does not name a variable", fix="give KEY or KEY=VALUE")
    if equals and _SECRET.search(key):
        raise BadInput(
            f"{key} looks like a secret, which must not be written",
            fix=f"give --env {key}, and set it where the host runs",
        )
    return key, value if equals else None


def _named(given: str | None, guess: str) -> str:
    name = given or re.sub(r"[^\w.-]+", "-", guess).strip("-.")
    if _NAME.fullmatch(name) is None:
        raise BadInput(f"{name!r} is not a valid name for a server", fix="give --name with letters, digits, - and _")
    return name


def uninstall(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the server in the configuration.")],
    host: Host = None,
    file: File = None,
    project: OfProject = False,
    dry_run: DryRun = False,
) -> None:
    """Remove a server from the configuration of a host; comments and other entries remain unchanged.

    A copy of the previous file is kept, with `.bak` added to its name.

    Examples:

    `mcp-bindgen uninstall weather --host claude-desktop`

    `mcp-bindgen uninstall weather --file mcp.json --dry-run`
    """
    place = place_named(host, file, project=project)
    put(place, remove(place, host, name), f"removed {name}", dry_run=dry_run)
