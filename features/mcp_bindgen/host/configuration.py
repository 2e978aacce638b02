"""Read the `mcpServers` file that most MCP hosts read, strictly: each mistake is reported in one line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_bindgen.runtime.model.json_types import is_array, is_object

from .auth_settings import AuthSettings

_TRANSPORTS = ("http", "streamable-http", "sse")
_VARIABLE = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}")
"""`${NAME}`, or `${NAME:-what it is if it is not set}`; some hosts write `${env:NAME}`."""


class BadConfig(ValueError):
    """A configuration that cannot be used; the message is one line that names the file and the entry."""


@dataclass(frozen=True)
class Entry:
    """An entry for one server: a command to start, or the URL of one that runs.

    Attributes:
        command: The program.
        args: Its arguments.
        env: Environment variables for it, beside the few that every child gets.
        cwd: The folder to run it in.
        url: Where it listens, if it is not a program to start.
        headers: HTTP headers to send there.
        type: Which transport it speaks at the URL, if that is known: `http` (or `streamable-http`), or `sse`.
        auth: How to be authorized there, if that is known.
        disabled: Whether hosts shall leave it out.
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


def read(path: Path) -> dict[str, Any]:
    """Return the `mcpServers` of a file, as they stand there.

    Raises:
        BadConfig: The file is missing or is no such JSON.
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


def refuse_file(target: str) -> None:
    """Raise `BadConfig` if the words for one server name a whole file of servers."""
    path = Path(target)
    if path.suffix == ".json" and path.is_file():
        names = [f"{target}#{name}" for name in read(path)]
        raise BadConfig(f"{target} is a file of servers: say {' or '.join(names[:5])}")


def entry(name: str, value: object) -> Entry:
    """Return one entry, checked; unknown members are allowed.

    Args:
        name: Its name in the file, if it has one.
        value: The entry.

    Raises:
        BadConfig: It cannot be used.
    """

    def bad(reason: str) -> BadConfig:
        return BadConfig(f"server {name!r}: {reason}" if name else reason)

    def text(member: str) -> str | None:
        found = given.get(member)
        if found is None:
            return None
        if not (isinstance(found, str) and found):
            raise bad(f'"{member}" must be text')
        return str(filled(member, {member: found})[member])

    def texts(member: str) -> dict[str, str]:
        found = given.get(member, {})
        if not is_object(found) or not all(isinstance(setting, str) for setting in found.values()):
            raise bad(f'"{member}" must be an object with texts')
        return filled(member, found)

    def filled(member: str, found: Mapping[Any, Any]) -> dict[Any, Any]:
        """Return an object with the values of environment variables in its texts."""
        settings = [setting for setting in found.values() if isinstance(setting, str)]
        wanted = [match for setting in settings for match in _VARIABLE.finditer(setting)]
        missing = [match[1] for match in wanted if match[1] not in os.environ and match[2] is None]
        if missing:
            raise bad(f'"{member}" needs the environment variable {missing[0]}, which is not set')
        return {
            key: _VARIABLE.sub(lambda found: os.environ.get(found[1]) or found[2] or "", setting)
            if isinstance(setting, str)
            else setting
            for key, setting in found.items()
        }

    def auth() -> AuthSettings | None:
        found = given.get("auth")
        if found is None:
            return None
        if not is_object(found):
            raise bad('"auth" must be an object')
        if url is None:
            raise bad('"auth" is for URLs; a program takes its credentials from "env"')
        if any(name.lower() == "authorization" for name in texts("headers")):
            raise bad('"auth" and a header "Authorization" are two ways to be authorized')
        try:
            return AuthSettings.read(filled("auth", found))
        except ValueError as error:
            raise bad(f'"auth": {error}') from None

    if not is_object(value):
        raise bad("an entry must be an object")
    given = value
    is_off = given.get("disabled", False)
    if not isinstance(is_off, bool):
        raise bad('"disabled" must be true or false')
    command, url, cwd, kind = text("command"), text("url"), text("cwd"), text("type")
    if (command is None) == (url is None):
        raise bad('it needs either "command" or "url"' + (", not both" if command else ""))
    if url is not None and not url.startswith(("http://", "https://")):
        raise bad('"url" must begin with http:// or https://')
    if url is not None and kind is not None and kind not in _TRANSPORTS:
        raise bad(f'"type" of a URL must be one of {", ".join(_TRANSPORTS)}')
    args = given.get("args", [])
    if not is_array(args) or not all(isinstance(argument, str) for argument in args):
        raise bad('"args" must be a list of texts')
    words = filled("args", dict(enumerate(args))).values()
    return Entry(command, tuple(words), texts("env"), cwd, url, texts("headers"), kind, auth(), is_off)
