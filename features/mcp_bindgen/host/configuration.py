"""Reader of the `mcpServers` file that most MCP hosts read; each mistake is reported in one line."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from mcp_bindgen.runtime import connecting
from mcp_bindgen.runtime.connecting import command_address, scheme_of
from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.session.targets import TRANSPORTS, Address, Auth, HasAddress

from .authorization import AuthSettings, StoredLogin

if TYPE_CHECKING:
    from mcp_bindgen.app.overrides import ToolOverride
    from mcp_bindgen.auth.client.login import Login
    from mcp_bindgen.auth.store import Store

REFERENCE = re.compile(
    r"\$\{(?:env:)?(?P<name>\w+|/)(?::-(?P<default>[^}]*))?\}|\$\{(?:input|command|config|file|workspaceFolder):[^}]*\}"
)
"""`${NAME}`, `${NAME:-default}`, `${env:NAME}` or `${workspaceFolder}`; without a name, one that only a host knows."""

_COMMENT = r"//[^\n]*|/\*.*?(?:\*/|$)"
_LENIENT = re.compile(rf'("(?:[^"\\]|\\.)*+"?)|{_COMMENT}|,(?=(?:\s|{_COMMENT})*+[}}\]])', re.DOTALL)
"""A string, which stays, or what editors allow beyond JSON: a comment, or a comma before the end."""

_TYPES = ("http", "streamable-http", "sse")


class BadConfig(ValueError):
    """A configuration that cannot be used; the message is one line that names the file and the entry."""


@dataclass(frozen=True)
class Entry:
    """Entry for one server, as in an `mcpServers` file: a command to start, or the URL of a running server.

    `connect` takes it as a target.

    Attributes:
        command: The program.
        args: Its arguments.
        env: Environment variables for it, beside the few that every child gets.
        cwd: The folder to run it in.
        url: The URL of the server, if it is not a program to start.
        headers: HTTP headers to send there.
        type: The transport at the URL, if known: `http` (or `streamable-http`), or `sse`.
        auth: The authorization settings of its URL, if known.
        disabled: True if hosts leave the server out.
        target: A server of this process, such as an `App`, in place of a command or URL.
        tools: Name of a tool -> its changes for users of the server: see `mcp_bindgen.app.ToolOverride`.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    type: str | None = None
    auth: AuthSettings | None = None
    disabled: bool = False
    target: HasAddress | None = None
    tools: Mapping[str, ToolOverride] = field(default_factory=dict[str, "ToolOverride"])

    @classmethod
    def read(cls, value: object, file: Path | None = None, *, expands: bool = True) -> Self:
        """Return a checked entry; unknown members are ignored, and variables of the environment are filled in.

        Args:
            value: The entry.
            file: Its file; `${workspaceFolder}` is the folder with the `.vscode` of the file, or the current folder.
            expands: False to keep references to variables as they are.

        Raises:
            ValueError: A member is missing or invalid, or there is no transport for the URL; the message names it.
        """

        def text(member: str) -> str | None:
            found = given.get(member)
            if found is not None and not (isinstance(found, str) and found):
                raise ValueError(f'"{member}" must be text')
            return found

        def texts(member: str) -> dict[str, str]:
            found = given.get(member, {})
            if not is_object(found) or not all(isinstance(setting, str) for setting in found.values()):
                raise ValueError(f'"{member}" must be an object with texts')
            return {name: str(setting) for name, setting in found.items()}

        if isinstance(value, HasAddress):
            return cls(target=value)
        if not is_object(value):
            raise ValueError("an entry must be an object")
        known = value.keys() & cls.__dataclass_fields__.keys() if expands else ()
        given = {member: _expand(member, one, file) if member in known else one for member, one in value.items()}
        command, url, cwd, kind = text("command"), text("url"), text("cwd"), text("type")
        if (command is None) == (url is None):
            raise ValueError('it needs either "command" or "url"' + (", not both" if command else ""))
        if url is not None and scheme_of(url) is None and (expands or REFERENCE.match(url) is None):
            raise ValueError('"url" must begin with a scheme such as https://')
        if url is not None and kind is not None and kind not in _TYPES:
            raise ValueError(f'"type" of a URL must be one of {", ".join(_TYPES)}')
        if url is not None and expands:
            TRANSPORTS.find(scheme_of(url) or "")
        disabled = given.get("disabled", False)
        if not isinstance(disabled, bool):
            raise ValueError('"disabled" must be true or false')
        args = given.get("args", [])
        if not is_array(args) or not all(isinstance(argument, str) for argument in args):
            raise ValueError('"args" must be a list of texts')
        found = cls(command, tuple(map(str, args)), texts("env"), cwd, url, texts("headers"), kind, disabled=disabled)
        return replace(found, auth=_auth(found, given.get("auth")), tools=_tools(given.get("tools")))

    def address(self, headers: Mapping[str, str], stderr: int | IO[Any] | None, auth: Auth | None) -> Address:
        """Return the address of the server, for `connect`.

        Raises:
            ValueError: The server is a command, which takes no headers and no authorization.
        """
        if self.target is not None:
            return self.target.address(headers, stderr, auth)
        if self.url is None:
            if headers or auth is not None:
                raise ValueError("headers and auth are for URLs; a command takes its credentials from the environment")
            return command_address(self.command or "", self.args, env=self.env, cwd=self.cwd, stderr=stderr)
        transport = TRANSPORTS.find(scheme_of(self.url) or "")
        found = transport.open(self.url, {**self.headers, **headers}, auth or self.authorization())
        if self.type is None or found.fallback is None:
            return found
        return replace(found, open=None) if self.type == "sse" else replace(found, fallback=None)

    @property
    def has_credentials(self) -> bool:
        """True if the URL or the headers have credentials, which take the place of a login."""
        in_url = "@" in (self.url or "").partition("://")[2].partition("/")[0]
        return in_url or any(name.lower() == "authorization" for name in self.headers)

    def authorization(self) -> Auth | None:
        """Return what authorizes requests as `auth` says; `None` without `auth`."""
        return None if self.auth is None else self.login_auth()

    def login_auth(
        self, command: str | None = None, *, login: Login | None = None, store: Store | None = None
    ) -> Auth | None:
        """Return what authorizes requests: stored logins by default; `None` where credentials are part of the entry.

        Args:
            command: The command that logs in, for errors.
            login: Lets users log in; by default an error names the command.
            store: Keeps logins; by default the keyring, or files where there is none.

        Raises:
            AuthorizationError: A package or a setting of the entry is missing.
        """
        if self.url is None or self.has_credentials:
            return None
        if self.auth is not None and self.auth.type != "oauth":
            return self.auth.auth()
        return StoredLogin(command or self.login_command(), self.auth, login=login, store=store)

    def login_command(self, where: str | None = None) -> str:
        """Return the shell command that logs in to the server.

        Args:
            where: The place of the entry, as `FILE.json#name`, if it stands in a file.
        """
        url, query, _ = (self.url or "").partition("?")
        client = self.auth.client_id if self.auth is not None and where is None else None
        more = ["--client-id", client] if client else []
        return shlex.join(["mcp-bindgen", "login", where or f"{url}{query and '?...'}", *more])


def _expand(member: str, value: object, file: Path | None) -> Any:
    """Return a member of an entry with the values of environment variables.

    Raises:
        ValueError: A variable is not set and has no default, or only a host knows the value.
    """

    def filled(found: re.Match[str]) -> str:
        name, default = found["name"], found["default"]
        if name is None:
            raise ValueError(f'"{member}" has {found[0]}, which only a host fills in; write ${{env:NAME}} in its place')
        text: str | None = os.environ.get(name) or places(file).get(name) or default
        if text is None and name not in os.environ:
            raise ValueError(f'"{member}" needs the environment variable {name}, which is not set')
        return text or ""

    return replaced(value, filled)


def replaced(value: object, change: Callable[[re.Match[str]], str]) -> Any:
    """Return a member of an entry with each reference replaced by the result of a function."""
    if is_object(value):
        return {name: replaced(one, change) for name, one in value.items()}
    if is_array(value):
        return [replaced(one, change) for one in value]
    return REFERENCE.sub(change, value) if isinstance(value, str) else value


def places(file: Path | None = None) -> Mapping[str, str]:
    """Return the places that VS Code and Cursor fill in, in an entry of a file: name in a reference -> value."""
    folder = Path.cwd() if file is None else file.parent.resolve()
    is_of_project = folder.name.startswith(".") and folder.parent != Path.home()
    workspace = folder.parent if is_of_project else Path.cwd()
    found = {"workspaceFolder": str(workspace), "workspaceFolderBasename": workspace.name, "pathSeparator": os.sep}
    return {**found, "userHome": str(Path.home()), "/": os.sep}


def read(path: Path) -> dict[str, Any]:
    """Return the servers of a file with comments, unchecked: `mcpServers`, or `servers` as in VS Code.

    Raises:
        BadConfig: The file is missing or has no such JSON.
    """
    try:
        text = path.read_text("utf-8-sig")
        document: object = json.loads(_LENIENT.sub(lambda one: one[1] or "\n" * one[0].count("\n"), text))
    except OSError as error:
        raise BadConfig(error.strerror or "cannot be read") from None
    except RecursionError:
        raise BadConfig("nested too deeply") from None
    except ValueError as error:
        raise BadConfig(f"not JSON: {error}") from None
    given = [document.get(member) for member in ("servers", "mcpServers")] if is_object(document) else []
    servers = [one for one in given if is_object(one)]
    if servers:
        return {name: one for all_ in servers for name, one in all_.items()}
    raise BadConfig('"mcpServers" must be there, an object with an entry for each server; VS Code names it "servers"')


def command_words(line: str) -> list[str]:
    """Return the words of a command line.

    Raises:
        BadConfig: It is the name of a file of servers.
        ValueError: It is no command line.
    """
    path = Path(line)
    if path.suffix == ".json" and path.is_file():
        names = [f"{line}#{name}" for name in read(path)]
        raise BadConfig(f"{line} is a file of servers: say {' or '.join(names[:5])}")
    return connecting.command_words(line)


def entry(name: str, value: object, file: Path | None = None, *, expands: bool = True) -> Entry:
    """Return a checked entry; unknown members are ignored.

    Args:
        name: Its name in the file, for errors; may be empty.
        value: The entry.
        file: Its file.
        expands: False to keep references to variables as they are.

    Raises:
        BadConfig: The entry cannot be used.
    """
    try:
        return Entry.read(value, file, expands=expands)
    except ValueError as error:
        raise BadConfig(f"server {name!r}: {error}" if name else str(error)) from None


def _tools(value: object) -> Mapping[str, ToolOverride]:
    if not is_object(value):  # some hosts have a list of names here
        return {}
    from mcp_bindgen.app.overrides import BadOverride, read_overrides  # few entries change tools

    try:
        return read_overrides(value)
    except BadOverride as error:
        raise ValueError(f'"tools": {error}') from None


def _auth(found: Entry, value: object) -> AuthSettings | None:
    if value is None:
        return None
    if not is_object(value):
        raise ValueError('"auth" must be an object')
    if found.url is None:
        raise ValueError('"auth" is for URLs; a program takes its credentials from "env"')
    if any(name.lower() == "authorization" for name in found.headers):
        raise ValueError('"auth" and a header "Authorization" are two ways to be authorized')
    try:
        return AuthSettings.read(value)
    except ValueError as error:
        raise ValueError(f'"auth": {error}') from None
