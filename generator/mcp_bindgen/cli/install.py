"""`mcp-bindgen install`: enter a server in the configuration of a host."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from mcp_bindgen.host.configuration import command_words
from mcp_bindgen.install.hosts import HOSTS, Server, back_up, enter, place_of
from mcp_bindgen.spec import BadInput, transaction
from mcp_bindgen.spec.transaction import Change

from .terminal import say, write_patch

_SECRET = re.compile(r"(?i)key|token|secret|passw|credential|auth")
_NAME = re.compile(r"[\w.-]{1,64}")


Host = Annotated[str | None, typer.Option("--host", metavar="HOST", help=f"Who starts it: {', '.join(HOSTS)}.")]
File = Annotated[Path | None, typer.Option("--file", metavar="FILE", help="A file with mcpServers, of any other host.")]
OfProject = Annotated[
    bool, typer.Option("--project", help="The host's file in this folder, and not the one in your home.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the change as a diff, and write nothing.")]


def install(
    server: Annotated[
        str,
        typer.Argument(help="A command in quotes that starts a server, its URL, or the folder of a project of ours."),
    ],
    host: Host = None,
    file: File = None,
    project: OfProject = False,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="What to call the server there.")] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY[=VALUE]",
            help="An environment variable for it; without a value the host takes it from its own. Repeatable.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace another server of that name.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Enter a server in the configuration of a host; comments and what else stands there stay as they are.

    The file as it was is kept beside it, with `.bak` added to its name. Nothing that looks like a secret is written:
    name the variable with `--env KEY`, and the host takes it from its environment.

    Examples:

    `mcp-bindgen install weather --host claude-desktop` enters the project in the folder `weather`.

    `mcp-bindgen install 'npx -y @modelcontextprotocol/server-everything' --host vscode --project --dry-run`

    `mcp-bindgen install https://example.com/mcp --host cursor --name example`

    `mcp-bindgen install 'python server.py' --file mcp.json --env API_KEY`

    `mcp-bindgen uninstall weather --host claude-desktop` takes it out again.
    """
    place = place_named(host, file, project=project)
    found = _server(server, name, env or [])
    changes = enter(place, host, found, force=force)
    if not changes:
        say(f"{place}: {found.name} is there already")
    else:
        put(place, changes, f"{found.name} is entered", dry_run=dry_run)


def place_named(host: str | None, file: Path | None, *, project: bool) -> Path:
    """Return the file that the command line names; raise `BadInput` where it names none, or two."""
    if (host is None) == (file is None):
        raise BadInput("a server is either a host's or in a file", fix=f"give --host ({', '.join(HOSTS)}) or --file")
    if file is not None and project:
        raise BadInput("--file and --project are two files", fix="leave one of them out")
    place = file if host is None or file is not None else place_of(host, project=project)
    assert place is not None
    return place.resolve()  # a link to a file stays a link


def put(place: Path, changes: Mapping[str, Change], done: str, *, dry_run: bool) -> None:
    """Change a file, after a copy of it, and say so; or print the change."""
    if dry_run:
        write_patch(transaction.unified_diff(changes))
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    backup = back_up(place)
    transaction.put(place.parent, changes)
    say(f"{place}: {done}" + (f"; as it was: {backup.name}" if backup is not None else ""))
    say("Restart the host, or have it read its configuration again.")


def _server(words: str, name: str | None, env: list[str]) -> Server:
    """Return the server that the command line names."""
    settings = dict(_setting(one) for one in env)
    values = {key: value for key, value in settings.items() if value is not None}
    passed = [key for key, value in settings.items() if value is None]
    if words.startswith(("http://", "https://")):
        parts = urlsplit(words)
        if parts.username is not None or _SECRET.search(parts.query):
            raise BadInput(
                "the URL has a secret in it, which is not written", fix="have the host log in, or leave it out"
            )
        if env:
            raise BadInput("--env is for servers that are started by the host")
        return Server(_named(name, (parts.hostname or "").removeprefix("www.").split(".")[0]), url=words)
    if Path(words).is_dir():
        from mcp_bindgen.scaffold.project import Project  # needs a reader of TOML

        found = Project.read(Path(words))
        own = found.folder.resolve() / ".venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        if own.exists():
            return Server(_named(name, found.name), str(own), ["-m", found.package], values, passed)
        source = {"PYTHONPATH": str(found.source.parent.resolve())}
        return Server(_named(name, found.name), sys.executable, ["-m", found.package], {**source, **values}, passed)
    try:
        program, *arguments = command_words(words)
    except ValueError as error:
        raise BadInput(str(error)) from None
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if equals and value and option.startswith("-") and _SECRET.search(option):
            raise BadInput(f"{option} is a secret, which is not written", fix="have the server read it from --env")
    where = shutil.which(program)
    if where is None:
        raise BadInput(f"there is no program {program!r}", fix="hosts start it as you do: check the command")
    near = [str(Path(argument).resolve()) if Path(argument).is_file() else argument for argument in arguments]
    return Server(_named(name, _stem([program, *arguments])), str(Path(where).absolute()), near, values, passed)


def _setting(text: str) -> tuple[str, str | None]:
    key, equals, value = text.partition("=")
    if not key.isidentifier():
        raise BadInput(f"--env {key} is no name of a variable", fix="give KEY, or KEY=VALUE")
    if equals and _SECRET.search(key):
        raise BadInput(
            f"{key} looks like a secret, which is not written", fix=f"give --env {key}, and set it where the host runs"
        )
    return key, value if equals else None


def _stem(words: list[str]) -> str:
    """Return what a server may be called: after its module, package or script."""
    plain = [word for word in words[1:] if not word.startswith("-")] or words
    return re.sub(r"@[\w.-]+$", "", plain[0].rstrip("/")).rpartition("/")[2].removesuffix(".py").removesuffix(".js")


def _named(given: str | None, guess: str) -> str:
    name = given or re.sub(r"[^\w.-]+", "-", guess).strip("-.")
    if _NAME.fullmatch(name) is None:
        raise BadInput(f"{name!r} is no name for a server", fix="give --name with letters, digits, - and _")
    return name
