"""`mcp-bindgen install` and `uninstall`: add a server to the configuration of a host, and remove it."""

from __future__ import annotations

import codecs
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any

import typer

from mcp_bindgen.cli.options import DryRun, Env, Force, Name, Server
from mcp_bindgen.cli.terminal import say, write_patch
from mcp_bindgen.host.configuration import REFERENCE, Entry, places, replaced
from mcp_bindgen.spec import BadInput, jsonc, transaction
from mcp_bindgen.spec.json import is_object
from mcp_bindgen.spec.toml import read_toml
from mcp_bindgen.spec.transaction import Change

from .servers import Named, redacted, unexpanded

BACKUP = ".bak"
"""Suffix of the copy of a previous file."""


@dataclass(frozen=True)
class Host:
    """A host and its configuration.

    Attributes:
        title: Its display name.
        user: Path of the user's file, below the home directory or the directory of application settings.
        project: Path of a project's file below its folder; empty if there is none.
        member: The member with the servers.
        variable: Format of a reference to an environment variable; empty if the host expands none. Hosts with `${%s}`
            expand `${NAME:-default}`, too, and hosts with `${env:%s}` references to folders.
        is_in_settings: True if the user's file is below the directory of application settings.
        takes_urls: True if its file may contain servers with URLs.
        takes_cwd: True if an entry may have the folder to run the server in.
        states_type: True if an entry has its transport as `type`.
    """

    title: str
    user: str
    project: str = ""
    member: str = "mcpServers"
    variable: str = ""
    _: KW_ONLY
    is_in_settings: bool = False
    takes_urls: bool = True
    takes_cwd: bool = False
    states_type: bool = False


_SETTINGS = {"darwin": "Library/Application Support", "win32": "AppData/Roaming"}
"""Platform -> directory of application settings below the home directory; `.config` on other platforms."""

HOSTS = {name: Host(**table) for name, table in read_toml(Path(__file__).with_name("hosts.toml")).items()}
"""Name -> host."""

FILE = Host("the file", "", variable="${%s}", takes_cwd=True)
"""A plain `mcpServers` file, for any host."""


def place_of(name: str, *, project: bool, platform: str = sys.platform) -> Path:
    """Return the configuration file of a host.

    Args:
        name: The host.
        project: True for the file in this folder, instead of the user's file.
        platform: A value of `sys.platform`.

    Raises:
        BadInput: There is no such host, or it has no file for a project.
    """
    host = _host(name)
    if not project:
        if name == "codex" and "CODEX_HOME" in os.environ:
            return Path(os.environ["CODEX_HOME"], "config.toml")
        return Path.home() / (_SETTINGS.get(platform, ".config") if host.is_in_settings else "") / host.user
    if not host.project:
        raise BadInput(f"{host.title} has no project file", fix="leave --project out")
    return Path(host.project)


def _host(name: str | None) -> Host:
    if name is None:
        return FILE
    if name not in HOSTS:
        raise BadInput(f"there is no host {name!r}", fix=f"known: {', '.join(HOSTS)}; or give --file FILE")
    return HOSTS[name]


def entry_for(name: str | None, server: Named) -> dict[str, Any]:
    """Return the entry of a server for a host; `None` is a plain file.

    References to variables remain, as the host writes them, so that no secret is written.

    Raises:
        BadInput: The host does not support the server.
    """
    host, entry = _host(name), server.entry
    if entry.url and not host.takes_urls:
        raise BadInput(
            f"{host.title} takes no URL from its file", fix="add it as a connector in its settings, or give a command"
        )
    if entry.cwd and not host.takes_cwd:
        raise BadInput(f'{host.title} takes no "cwd"', fix="remove it, and give the server absolute paths")
    found: dict[str, Any] = {"command": entry.command, "args": list(entry.args), "env": {**entry.env}, "cwd": entry.cwd}
    if entry.url:
        found = {"url": entry.url, "http_headers" if name == "codex" else "headers": {**entry.headers}}
    if name == "codex":  # it passes variables on, and expands no references
        found["env_vars"] = [key for key, value in entry.env.items() if value in (f"${{{key}}}", f"${{env:{key}}}")]
        found["env"] = {key: value for key, value in entry.env.items() if key not in found["env_vars"]}
    elif entry.url or host.states_type:
        found = {"type": "stdio" if not entry.url else "sse" if entry.type == "sse" else "http"} | found

    def spelled(found: re.Match[str]) -> str:
        name, default = found["name"], found["default"]
        is_place, has_places = name in places(), "env:" in host.variable
        if host is FILE or (is_place and has_places):
            return found[0]
        if not host.variable or name is None or is_place or (default is not None and has_places):
            fix = f"write {host.variable % 'NAME'} in its place" if host.variable else "write its value there yourself"
            raise BadInput(f"{host.title} fills in no variables like {found[0]}", fix=fix)
        return host.variable % (name if default is None else f"{name}:-{default}")

    return {member: replaced(value, spelled) for member, value in found.items() if value or member == "args"}


def enter(file: Path, name: str | None, server: Named, *, force: bool = False) -> dict[str, Change]:
    """Return the changes that add a server.

    Args:
        file: The file.
        name: The host; `None` for a plain `mcpServers` file.
        server: The server.
        force: Replace another entry of that name.

    Returns:
        File name -> change; empty if the entry exists already.

    Raises:
        BadInput: The host cannot read the file, or it has another entry of that name.
    """
    member = _host(name).member

    def entered(text: str, format: _Format) -> str | None:
        entry = entry_for(name, server)
        servers = format.servers(text, member)
        if server.name in servers:
            if servers[server.name] == entry:
                return None
            if not force:
                raise BadInput(f"has another server {server.name!r}", fix="give --name, or replace it with --force")
        edited = format.with_member(text, (member, server.name), entry)
        return format.checked(text, edited, member, {**servers, server.name: entry})

    return _changed(file, entered)


def remove(file: Path, name: str | None, server: str) -> dict[str, Change]:
    """Return the changes that remove a server.

    Args:
        file: The file.
        name: The host; `None` for a plain `mcpServers` file.
        server: The name of the server in the configuration.

    Raises:
        BadInput: The host cannot read the file, or it has no such server; the error lists its servers.
    """
    member = _host(name).member

    def removed(text: str, format: _Format) -> str:
        known = format.servers(text, member)
        if server not in known:
            there = f"there are: {', '.join(known)}" if known else "there are none"
            raise BadInput(f"has no server {server!r}", fix=there)
        edited = format.without_member(text, (member, server))
        return format.checked(text, edited, member, {name: known[name] for name in known if name != server})

    return _changed(file, removed)


def _changed(file: Path, edit: Callable[[str, _Format], str | None]) -> dict[str, Change]:
    """Return the change of a file by an edit; empty if there is none; raise `BadInput` with its name.

    The edit gets lines that end in `\\n`. A file in which all end in `\\r\\n` keeps them, and its byte order mark.
    """
    before = transaction.read(file)
    raw = before or b""
    newline = b"\r\n" if 0 < raw.count(b"\n") == raw.count(b"\r\n") else b"\n"
    mark = codecs.BOM_UTF8 if raw.startswith(codecs.BOM_UTF8) else b""
    try:
        text = raw.removeprefix(mark).replace(newline, b"\n").decode()
        after = edit(text, _TOML if file.suffix == ".toml" else _JSON)
    except UnicodeDecodeError:
        raise BadInput("is not UTF-8", file=file) from None
    except BadInput as error:
        raise BadInput(error.message, file=file, fix=error.fix) from None
    return {} if after is None else {file.name: Change(before, mark + after.encode().replace(b"\n", newline))}


def back_up(file: Path) -> Path | None:
    """Copy a file with its permissions, and return the copy; None if there is no file."""
    if not file.exists():
        return None
    copy = file.with_name(f"{file.name}{BACKUP}")
    with tempfile.TemporaryDirectory(dir=file.parent) as scratch:
        fresh = Path(scratch, copy.name)
        shutil.copy2(file, fresh)
        fresh.replace(copy)
    return copy


@dataclass(frozen=True)
class _Format:
    """Functions that read and edit a configuration, and keep everything else in it.

    Attributes:
        read: Return the value of a text.
        with_member: Return a text with a member set, at a path of names.
        without_member: Return a text without the member at a path of names.
    """

    read: Callable[[str], Any]
    with_member: Callable[[str, Sequence[str], Any], str]
    without_member: Callable[[str, Sequence[str]], str]

    def checked(self, text: str, edited: str, member: str, servers: Mapping[str, Any]) -> str:
        """Return an edited text if it has these servers and changes nothing else; raise `BadInput` otherwise."""
        document: Any = self.read(text) if text.strip() else {}
        sides: list[Any] = [{**document, member: servers}, {member: {}, **self.read(edited)}]
        if len({json.dumps(one, sort_keys=True, default=str) for one in sides}) > 1:
            raise BadInput("an edit would change other entries", fix="edit it by hand")
        return edited

    def servers(self, text: str, member: str) -> dict[str, Any]:
        """Return name -> entry of the servers in a text; empty if it has none."""
        document: Any = self.read(text) if text.strip() else {}
        servers: Any = document.get(member) if is_object(document) else None
        return servers if is_object(servers) else {}


def _toml_document(text: str) -> Any:
    import tomlkit  # for Codex only
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise BadInput(f"is not TOML: {error}", fix="correct it there") from None


def _toml_with_member(text: str, path: Sequence[str], value: Mapping[str, Any]) -> str:
    import tomlkit

    document, (member, name) = _toml_document(text), path
    is_inline = member in document and re.search(rf"^\s*\[\W*{member}", text, re.MULTILINE) is None
    servers: Any = document.setdefault(member, tomlkit.table(is_super_table=True))
    if not isinstance(servers, MutableMapping):
        raise BadInput(f"{member} is no table", fix="correct it there")
    inline: Any = tomlkit.inline_table()  # the header of a table would take over the dotted keys that follow
    inline.update(value)
    is_new = name not in servers
    servers[name] = inline if is_inline else tomlkit.item(value)
    edited = tomlkit.dumps(document)
    return edited if is_new else _with_comments(text, edited)


def _toml_without_member(text: str, path: Sequence[str]) -> str:
    document, (member, name) = _toml_document(text), path
    del document[member][name]
    return _with_comments(text, document.as_string())


def _with_comments(text: str, edited: str) -> str:
    """Return an edited text with the comments below a table that was removed: they may be about the next table."""
    before, after = text.splitlines(keepends=True), edited.splitlines(keepends=True)
    pairs = zip(reversed(before), reversed(after), strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    removed, end = before[: len(before) - same], len(after) - same
    lines = list(takewhile(lambda line: not line.strip() or line.lstrip().startswith("#"), reversed(removed)))
    return "".join([*after[:end], *reversed(lines), *after[end:]])


_JSON = _Format(jsonc.loads, jsonc.with_member, jsonc.without_member)
_TOML = _Format(lambda text: _toml_document(text).unwrap(), _toml_with_member, _toml_without_member)


_NAME = re.compile(r"[\w.-]{1,64}")


HostName = Annotated[
    str | None, typer.Option("--host", metavar="HOST", help=f"Host that starts the server: {', '.join(HOSTS)}.")
]
File = Annotated[Path | None, typer.Option("--file", metavar="FILE", help="File with mcpServers, for any other host.")]
OfProject = Annotated[
    bool, typer.Option("--project", help="Use the host's file in this folder instead of the one in your home.")
]


def install(
    server: Server,
    host: HostName = None,
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
    if found.ignored:
        say(f"warning: not copied: {', '.join(found.ignored)}", err=True)
    if not changes:
        say(f"{place}: {found.name} is up to date")
    else:
        put(place, changes, f"added {found.name}", dry_run=dry_run)


def place_named(host: str | None, file: Path | None, *, project: bool) -> Path:
    """Return the configuration file; raise `BadInput` if the command line names none, or two."""
    if host is not None and file is not None:
        raise BadInput("--host and --file exclude each other", fix="leave one of them out")
    if host is None and file is None:
        raise BadInput("the configuration file is not known", fix=f"give --host ({', '.join(HOSTS)}) or --file")
    if file is not None and project:
        raise BadInput("--file and --project exclude each other", fix="leave one of them out")
    place = place_of(host, project=project) if host is not None else file
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


def _server(words: str, name: str | None, env: list[str]) -> Named:
    """Return the server that the command line names, with its references to variables."""
    settings = dict(_setting(one) for one in env)
    found = unexpanded(words)
    entry, label = found.entry, _named(name, found.name)
    reason = "a secret, which must not be written"
    if entry.url is not None:
        given = [entry.url, *(f"{key}: {value}" for key, value in entry.headers.items())]
        if _secret(given) or entry.auth is not None:
            raise BadInput(
                f"the URL contains {reason}"
                if entry.url == words
                else f"{words} has credentials, which must not be written",
                fix="remove it, and let the host log in; or write ${NAME} in its place, in the entry of a file",
            )
        if env:
            raise BadInput("--env needs a server that the host starts", fix="leave it out for URLs")
        return replace(found, name=label)
    if option := _secret([*(f"{key}={value}" for key, value in entry.env.items()), entry.command or "", *entry.args]):
        raise BadInput(f"{option} is {reason}", fix="pass it to the server with --env")
    command, folder = entry.command or "", entry.cwd or ""
    where = shutil.which(Path(folder or ".", command).absolute() if Path(command).name != command else command)
    if where is None and REFERENCE.search(f"{folder}{command}") is None:
        raise BadInput(f"there is no program {entry.command!r}", fix="check the command")
    values = {key: f"${{{key}}}" if value is None else value for key, value in settings.items()}
    near = [word if folder or not Path(word).is_file() else str(Path(word).resolve()) for word in entry.args]
    cwd = str(Path(folder).absolute()) if folder and REFERENCE.search(folder) is None else entry.cwd
    program = Entry(str(Path(where).absolute()) if where else command, tuple(near), {**entry.env, **values}, cwd)
    return replace(found, entry=program, name=label)


def _secret(words: Sequence[str]) -> str | None:
    """Return the option or the name of the first secret in a command line; values of variables are none."""
    given = [REFERENCE.sub(lambda found: found["default"] or "", word) for word in words]
    for before, word, shown in zip(["", *given], given, redacted(given, all_settings=False), strict=False):
        if shown != word:
            return before if shown == "..." else shown.removesuffix("...").rstrip("=:\"' ")
    return None


def _setting(text: str) -> tuple[str, str | None]:
    key, equals, value = text.partition("=")
    if not key.isidentifier():
        raise BadInput(f"--env {key} does not name a variable", fix="give KEY or KEY=VALUE")
    if _secret([text]):
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
    host: HostName = None,
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
