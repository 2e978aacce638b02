"""Hosts: path and format of their configuration, and the members of an entry."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_bindgen.spec import BadInput, jsonc, transaction
from mcp_bindgen.spec.json import is_object
from mcp_bindgen.spec.transaction import Change

BACKUP = ".bak"
"""Suffix of the copy of a previous file."""


@dataclass(frozen=True)
class Host:
    """A host and its configuration.

    Attributes:
        title: Its display name.
        user: Path of the user's file, below the home directory or the directory of application settings.
        is_application: True if the user's file is below the directory of application settings.
        project: Path of a project's file below its folder; empty if there is none.
        member: The member with the servers.
        variable: Format of a reference to an environment variable; empty if the host expands none.
        takes_urls: True if its file may contain servers with URLs.
        states_type: True if an entry has its transport as `type`.
    """

    title: str
    user: str
    is_application: bool = False
    project: str = ""
    member: str = "mcpServers"
    variable: str = ""
    takes_urls: bool = True
    states_type: bool = False


_SETTINGS = {"darwin": "Library/Application Support", "win32": "AppData/Roaming"}
"""Platform -> directory of application settings below the home directory; `.config` on other platforms."""

HOSTS: Mapping[str, Host] = {
    "claude-desktop": Host("Claude Desktop", "Claude/claude_desktop_config.json", True, takes_urls=False),
    "claude-code": Host("Claude Code", ".claude.json", False, ".mcp.json", variable="${%s}", states_type=True),
    "cursor": Host("Cursor", ".cursor/mcp.json", False, ".cursor/mcp.json", variable="${env:%s}"),
    "vscode": Host("VS Code", "Code/User/mcp.json", True, ".vscode/mcp.json", "servers", "${env:%s}", states_type=True),
    "codex": Host("Codex", ".codex/config.toml", False, ".codex/config.toml", "mcp_servers"),
}
"""Name -> host."""

FILE = Host("the file", "", variable="${%s}")
"""A plain `mcpServers` file, for any host."""


@dataclass(frozen=True)
class Server:
    """A server to add.

    Attributes:
        name: Its name in the configuration.
        command: The program; empty for one at a URL.
        args: Its arguments.
        env: Environment variables to write.
        passed: Names of variables that the host takes from its own environment, so that no secret is written.
        url: Its URL.
    """

    name: str
    command: str = ""
    args: Sequence[str] = ()
    env: Mapping[str, str] | None = None
    passed: Sequence[str] = ()
    url: str = ""


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
        return Path.home() / (_SETTINGS.get(platform, ".config") if host.is_application else "") / host.user
    if not host.project:
        raise BadInput(f"{host.title} has no project file", fix="leave --project out")
    return Path(host.project)


def _host(name: str | None) -> Host:
    if name is None:
        return FILE
    if name not in HOSTS:
        raise BadInput(f"there is no host {name!r}", fix=f"known: {', '.join(HOSTS)}; or give --file FILE")
    return HOSTS[name]


def entry_for(name: str | None, server: Server) -> dict[str, Any]:
    """Return the entry of a server for a host; `None` is a plain file.

    Raises:
        BadInput: The host does not support the server.
    """
    host = _host(name)
    if server.url and not host.takes_urls:
        raise BadInput(
            f"{host.title} takes no URL from its file", fix="add it as a connector in its settings, or give a command"
        )
    if name == "codex":
        entry: dict[str, Any] = {"url": server.url} if server.url else _program(server, server.env or {})
        return entry | ({"env_vars": list(server.passed)} if server.passed else {})
    if server.passed and not host.variable:
        raise BadInput(
            f"{host.title} fills in no variables, so {server.passed[0]} would have to be written down",
            fix="leave --env out and write it there yourself",
        )
    if server.url:
        return {"type": "http", "url": server.url}
    passed = {one: host.variable % one for one in server.passed}
    kind = {"type": "stdio"} if host.states_type else {}
    return kind | _program(server, {**(server.env or {}), **passed})


def _program(server: Server, env: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {"command": server.command, "args": list(server.args)}
    return found | ({"env": dict(env)} if env else {})


def enter(file: Path, name: str | None, server: Server, *, force: bool = False) -> dict[str, Change]:
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
        return format.with_member(text, (member, server.name), entry)

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
        return format.without_member(text, (member, server))

    return _changed(file, removed)


def _changed(file: Path, edit: Callable[[str, _Format], str | None]) -> dict[str, Change]:
    """Return the change of a file by an edit; empty if there is none; raise `BadInput` with its name."""
    before = transaction.read(file)
    try:
        after = edit((before or b"").decode("utf-8-sig"), _TOML if file.suffix == ".toml" else _JSON)
    except UnicodeDecodeError:
        raise BadInput("is not UTF-8", file=file) from None
    except BadInput as error:
        raise BadInput(error.message, file=file, fix=error.fix) from None
    return {} if after is None else {file.name: Change(before, after.encode())}


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
    servers: Any = document.setdefault(member, tomlkit.table(is_super_table=True))
    if not isinstance(servers, MutableMapping):
        raise BadInput(f"{member} is no table", fix="correct it there")
    servers[name] = tomlkit.item(value)
    return tomlkit.dumps(document)


def _toml_without_member(text: str, path: Sequence[str]) -> str:
    document, (member, name) = _toml_document(text), path
    del document[member][name]
    return str(document.as_string())


_JSON = _Format(jsonc.loads, jsonc.with_member, jsonc.without_member)
_TOML = _Format(lambda text: _toml_document(text).unwrap(), _toml_with_member, _toml_without_member)
