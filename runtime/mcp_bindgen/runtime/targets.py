"""Targets of `connect`: URLs, command lines, entries of an `mcpServers` file, and transports."""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Self, TypeAlias

from .entry_points import TRANSPORTS, Address
from .model.json_types import is_array, is_object
from .protocol.transport import Transport
from .session.authorization import Auth
from .transports.stdio import stdio

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
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
        if url is not None and not _SCHEME.match(url):
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
"""A URL, a command line, its words, an entry of an `mcpServers` file, or a transport, open or still to be opened."""


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


def scheme_of(url: str) -> str:
    """Return the scheme of a URL in lower case."""
    return url.partition(":")[0].lower()


def address(
    target: Target,
    headers: Mapping[str, str] | None = None,
    stderr: int | IO[Any] | None = None,
    auth: Auth | None = None,
) -> Address:
    """Return the address of a target.

    Args:
        target: The target.
        headers: HTTP headers to send to a URL, beside those of an entry.
        stderr: Receives the error output of a command.
        auth: Authorizes requests to a URL, in place of the authorization of an entry.

    Raises:
        ValueError: The target cannot be used, or it takes no headers or `auth`.
        ImportError: A package that the URL needs is not installed.
        AuthorizationError: `auth` cannot be used at this URL.
    """
    if isinstance(target, str):
        target = Entry.read({"url": target}) if _SCHEME.match(target) else command_words(target)
    if isinstance(target, Mapping):
        if "auth" in target:
            raise ValueError('the member "auth" of an entry is for hosts; pass auth= instead')
        target = Entry.read(target)
    elif isinstance(target, Sequence):
        target = Entry(target[0], tuple(target[1:]))
    if isinstance(target, Entry) and target.url is not None:
        return _url(target, target.url, {**target.headers, **(headers or {})}, auth or target.authorization())
    if headers:
        raise ValueError("headers can only be sent to a URL")
    if auth is not None:
        raise ValueError("auth is for URLs; a command takes its credentials from the environment")
    if isinstance(target, Entry):
        return _command(target, stderr)
    return Address(lambda: target if isinstance(target, AbstractAsyncContextManager) else nullcontext(target))


def command_words(line: str) -> list[str]:
    """Return the words of a command line.

    Raises:
        ValueError: It is no command line, or it is the name of a configuration file.
    """
    if line.endswith(".json") and Path(line).is_file():
        raise ValueError(f"{line} is a file of servers; connect to one of its entries")
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ValueError(f"not a command: {line}: {error}") from None
    if not words:
        raise ValueError("the command is empty")
    return words


def _url(entry: Entry, url: str, headers: Mapping[str, str], auth: Auth | None) -> Address:
    found = TRANSPORTS.find(scheme_of(url)).open(url, headers, auth)
    if entry.type is None or found.fallback is None:
        return found
    return replace(found, open=None) if entry.type == "sse" else replace(found, fallback=None)


def _command(entry: Entry, stderr: int | IO[Any] | None) -> Address:
    command = entry.command or ""

    def start() -> AbstractAsyncContextManager[Transport]:
        _begin_line(stderr)
        return stdio(command, *entry.args, env=entry.env, cwd=entry.cwd, stderr=stderr)

    place = (command, *entry.args, entry.cwd)
    return Address(start, place=place, server=(place, frozenset(entry.env.items())), reopens=True)


def _begin_line(stderr: int | IO[Any] | None) -> None:
    """Begin a new line in a file that an earlier run of the program has written to."""
    if stderr is not None:
        descriptor = stderr if isinstance(stderr, int) else stderr.fileno()
        if descriptor >= 0 and stat.S_ISREG(os.fstat(descriptor).st_mode) and os.lseek(descriptor, 0, os.SEEK_END) > 0:
            os.write(descriptor, b"\n")
