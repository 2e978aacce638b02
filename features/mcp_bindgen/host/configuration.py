"""Reader of the `mcpServers` file that most MCP hosts read; each mistake is reported in one line."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from mcp_bindgen.runtime import connecting
from mcp_bindgen.runtime.entry_points import TRANSPORTS
from mcp_bindgen.runtime.model.json_types import is_object
from mcp_bindgen.runtime.session import targets
from mcp_bindgen.runtime.session.authorization import Auth

from .auth_settings import AuthSettings
from .stored_login import StoredLogin

if TYPE_CHECKING:
    from mcp_bindgen.auth.client.login import Login
    from mcp_bindgen.auth.store import Store


class BadConfig(ValueError):
    """A configuration that cannot be used; the message is one line that names the file and the entry."""


@dataclass(frozen=True)
class Entry(targets.Entry):
    """Entry for one server, which `connect` takes as a target.

    Attributes:
        auth: The authorization settings of its URL, if known.
        disabled: True if hosts leave the server out.
    """

    auth: AuthSettings | None = None
    disabled: bool = False

    @classmethod
    def read(cls, value: object) -> Self:
        """Return a checked entry; unknown members are ignored, and variables of the environment are filled in.

        Raises:
            ValueError: A member is missing or invalid, or there is no transport for the URL; the message names it.
        """
        found = super().read(value)
        if found.url is not None:
            TRANSPORTS.find(targets.scheme_of(found.url) or "")
        given: Mapping[str, Any] = value if is_object(value) else {}
        disabled = given.get("disabled", False)
        if not isinstance(disabled, bool):
            raise ValueError('"disabled" must be true or false')
        return replace(found, auth=_auth(found, given.get("auth")), disabled=disabled)

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
        client = self.auth.client_id if self.auth is not None and where is None else None
        more = ["--client-id", client] if client else []
        return shlex.join(["mcp-bindgen", "login", where or (self.url or "").partition("?")[0], *more])


def read(path: Path) -> dict[str, Any]:
    """Return the `mcpServers` of a file, unchecked.

    Raises:
        BadConfig: The file is missing or has no such JSON.
    """
    try:
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise BadConfig(error.strerror or "cannot be read") from None
    except RecursionError:
        raise BadConfig("nested too deeply") from None
    except ValueError as error:
        raise BadConfig(f"not JSON: {error}") from None
    servers = document.get("mcpServers") if is_object(document) else None
    if not is_object(servers):
        raise BadConfig('"mcpServers" must be there, an object with an entry for each server')
    return servers


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


def entry(name: str, value: object) -> Entry:
    """Return a checked entry; unknown members are ignored.

    Args:
        name: Its name in the file, for errors; may be empty.
        value: The entry.

    Raises:
        BadConfig: The entry cannot be used.
    """
    try:
        return Entry.read(value)
    except ValueError as error:
        raise BadConfig(f"server {name!r}: {error}" if name else str(error)) from None


def _auth(found: Entry, value: object) -> AuthSettings | None:
    if value is None:
        return None
    if not is_object(value):
        raise ValueError('"auth" must be an object')
    if found.url is None:
        raise ValueError('"auth" is for URLs; a program takes its credentials from "env"')
    if any(name.lower() == "authorization" for name in found.headers):
        raise ValueError('"auth" and a header "Authorization" are two ways to be authorized')
    members = {key: targets.expand("auth", one) if isinstance(one, str) else one for key, one in value.items()}
    try:
        return AuthSettings.read(members)
    except ValueError as error:
        raise ValueError(f'"auth": {error}') from None
