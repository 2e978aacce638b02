"""Targets of connections and the options of `connect`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import IO, Any, Self, TypeAlias, TypedDict

from ..model.json_types import is_array, is_object
from ..protocol.transport import Transport
from .authorization import Auth
from .result_cache import ResultCache

_URL = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}")
"""`${NAME}`, `${NAME:-default}`, or `${env:NAME}` as some hosts write it."""

_TYPES = ("http", "streamable-http", "sse")


@dataclass(frozen=True)
class Entry:
    """Entry for one server, as in an `mcpServers` file: a command to start, or the URL of a running server.

    Attributes:
        command: The program.
        args: Its arguments.
        env: Environment variables for it, beside the few that every child gets.
        cwd: The folder to run it in.
        url: The URL of the server, if it is not a program to start.
        headers: HTTP headers to send there.
        type: The transport at the URL, if known: `http` (or `streamable-http`), or `sse`.
    """

    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    type: str | None = None

    @classmethod
    def read(cls, value: object) -> Self:
        """Return a checked entry; unknown members are ignored, and variables of the environment are filled in.

        Raises:
            ValueError: A member is missing or invalid; the message names it.
        """

        def text(member: str) -> str | None:
            found = given.get(member)
            if found is not None and not (isinstance(found, str) and found):
                raise ValueError(f'"{member}" must be text')
            return None if found is None else expand(member, found)

        def texts(member: str) -> dict[str, str]:
            found = given.get(member, {})
            if not is_object(found) or not all(isinstance(setting, str) for setting in found.values()):
                raise ValueError(f'"{member}" must be an object with texts')
            return {name: expand(member, setting) for name, setting in found.items()}

        if not is_object(value):
            raise ValueError("an entry must be an object")
        given = value
        command, url, cwd, kind = text("command"), text("url"), text("cwd"), text("type")
        if (command is None) == (url is None):
            raise ValueError('it needs either "command" or "url"' + (", not both" if command else ""))
        if url is not None and scheme_of(url) is None:
            raise ValueError('"url" must begin with a scheme such as https://')
        if url is not None and kind is not None and kind not in _TYPES:
            raise ValueError(f'"type" of a URL must be one of {", ".join(_TYPES)}')
        args = given.get("args", [])
        if not is_array(args) or not all(isinstance(argument, str) for argument in args):
            raise ValueError('"args" must be a list of texts')
        words = tuple(expand("args", word) for word in args)
        return cls(command, words, texts("env"), cwd, url, texts("headers"), kind)

    def authorization(self) -> Auth | None:
        """Return what authorizes requests to the URL; nothing here, a subclass may know more."""
        return None


Target: TypeAlias = str | Sequence[str] | Mapping[str, Any] | Entry | Transport | AbstractAsyncContextManager[Transport]
"""A URL, a command line, its words, an entry of an `mcpServers` file, or a transport, open or unopened."""


def expand(member: str, text: str) -> str:
    """Return a text of an entry with the values of environment variables.

    Raises:
        ValueError: A variable is not set and has no default.
    """

    def value(found: re.Match[str]) -> str:
        if found[1] not in os.environ and found[2] is None:
            raise ValueError(f'"{member}" needs the environment variable {found[1]}, which is not set')
        return os.environ.get(found[1]) or found[2] or ""

    return _VARIABLE.sub(value, text)


def scheme_of(target: str) -> str | None:
    """Return the scheme of a URL in lower case; `None` for other text, such as a command line."""
    found = _URL.match(target)
    return None if found is None else found[1].lower()


class ConnectOptions(TypedDict, total=False):
    """Options of `connect`, which describes them."""

    headers: Mapping[str, str] | None
    auth: Auth | None
    cache: ResultCache | None
    probe_timeout: float
    timeout: float | None
    exactly: bool
    stderr: int | IO[Any] | None
