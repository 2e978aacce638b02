"""Find out what can be connected to: URLs, commands, entries of an `mcpServers` file, and transports."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any, TypeAlias
from urllib.parse import urlsplit

from mcp_bindgen.host.configuration import Entry, entry, refuse_file
from mcp_bindgen.host.stored_login import entry_auth

from .concurrency import Pauses
from .protocol.transport import Transport
from .session.authorization import Auth
from .transports.stdio import stdio

Target: TypeAlias = str | Sequence[str] | Mapping[str, Any] | Entry | Transport | AbstractAsyncContextManager[Transport]
"""A URL, a command line, its words, an entry of an `mcpServers` file, or a transport (also one that is yet to open)."""

Opener: TypeAlias = Callable[[], AbstractAsyncContextManager[Transport]]


@dataclass(frozen=True)
class Address:
    """The address of a server.

    Attributes:
        open: Opens a connection; `None` where only `sse` will do.
        sse: Opens a connection over HTTP+SSE, where there may be one.
        place: What belongs to the server as a program, such as its era, is remembered under this; `None` if nothing is.
        server: What identifies the server and what it offers.
        reopens: Whether a connection can be opened again because the server ended it.
        pauses: Stops the clocks while somebody is asked for authorization.
    """

    open: Opener | None
    sse: Opener | None = None
    place: Hashable | None = None
    server: Hashable | None = None
    reopens: bool = False
    pauses: Pauses = field(default_factory=Pauses)


def address(
    target: Target,
    headers: Mapping[str, str] | None = None,
    stderr: int | IO[Any] | None = None,
    auth: Auth | None = None,
) -> Address:
    """Return the address of `target`.

    Args:
        target: What to connect to.
        headers: HTTP headers to send there, beside those of an entry.
        stderr: Where the error output of a command goes.
        auth: Authorizes requests to a URL, in place of what an entry says.

    Raises:
        ValueError: It is nothing to connect to, or headers or `auth` are given for what takes none.
        AuthorizationError: `auth` is of no use at this URL.
    """
    if isinstance(target, str):
        target = {"url": target} if target.startswith(("http://", "https://")) else command_words(target)
    if isinstance(target, AbstractAsyncContextManager):
        found = Address(lambda: target)
    elif isinstance(target, Mapping | Entry):
        return _entry(target if isinstance(target, Entry) else entry("", dict(target)), headers, stderr, auth)
    elif isinstance(target, Sequence):
        command, *arguments = target
        return _entry(Entry(command, tuple(arguments)), headers, stderr, auth)
    else:
        found = Address(lambda: nullcontext(target))
    _check_plain(headers, auth)
    return found


def command_words(line: str) -> list[str]:
    """Return the words of a command line; raise `ValueError` when it is none, or names a whole file of servers."""
    refuse_file(line)
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ValueError(f"not a command: {line}: {error}") from None
    if not words:
        raise ValueError("the command is empty")
    return words


def _check_plain(headers: Mapping[str, str] | None, auth: Auth | None) -> None:
    if headers:
        raise ValueError("headers can only be sent to a URL")
    if auth is not None:
        raise ValueError("auth is for URLs; what is started takes its credentials from the environment")


def _entry(found: Entry, headers: Mapping[str, str] | None, stderr: int | IO[Any] | None, auth: Auth | None) -> Address:
    if found.url is not None:
        if auth is None and found.auth is not None:
            auth = entry_auth(found)
        return _url(found.url, {**found.headers, **(headers or {})}, found.type, auth)
    _check_plain(headers, auth)
    command = found.command or ""

    def start() -> AbstractAsyncContextManager[Transport]:
        _begin_line(stderr)
        return stdio(command, *found.args, env=found.env, cwd=found.cwd, stderr=stderr)

    place = (command, *found.args, found.cwd)
    return Address(start, place=place, server=(place, frozenset(found.env.items())), reopens=True)


def _begin_line(stderr: int | IO[Any] | None) -> None:
    """Begin a line in a file that the program has written to when it was started before."""
    if stderr is not None:
        descriptor = stderr if isinstance(stderr, int) else stderr.fileno()
        if descriptor >= 0 and stat.S_ISREG(os.fstat(descriptor).st_mode) and os.lseek(descriptor, 0, os.SEEK_END) > 0:
            os.write(descriptor, b"\n")


def _url(url: str, headers: Mapping[str, str], kind: str | None, auth: Auth | None) -> Address:
    from mcp_bindgen.http.client.legacy_sse import sse
    from mcp_bindgen.http.client.transport import http  # brings an HTTP client with it

    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    place = f"{parts.scheme}://{host}{parts.path}"
    return Address(
        None if kind == "sse" else partial(http, url, headers=headers, auth=auth),
        None if kind in ("http", "streamable-http") else partial(sse, url, headers=headers, auth=auth),
        place=place,
        server=f"{place}?{parts.query}",
        pauses=auth.authorizer(url).pauses if auth is not None else Pauses(),
    )
