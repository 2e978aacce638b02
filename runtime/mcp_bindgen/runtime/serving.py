"""Run servers as the command line says."""

from __future__ import annotations

import argparse
import logging
import os
import re
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import anyio

from mcp_bindgen.http.server.event_store.base import EventStore

from .concurrency import leave
from .logs import FORMATS, log, use_format
from .protocol.access import AccessPolicy
from .session.server import Server, lifespans, serve
from .transports.stdio import StdioServerTransport

_MALFORMED = "the URL of the store is malformed; use redis://[USER:PASSWORD@]HOST:PORT"


class Served(Protocol):
    """Something that has servers: an `App`, or an object of a contract's class."""

    def servers(self) -> Sequence[Server]:
        """Return a server for each revision."""
        ...


def run(
    *served: Server | Served,
    auth: AccessPolicy | Callable[[], AccessPolicy] | None = None,
    revisions: Sequence[str] | None = None,
    allowed_hosts: Collection[str] | None = None,
    allowed_origins: Collection[str] | None = None,
    log_format: str | None = None,
) -> None:
    """Serve until the client is gone or the process is stopped: stdio, or what the command line asks for.

    Args:
        served: Servers, at most one for each revision, or objects that have such servers, such as an `App`; the other
            revisions are served by conversion.
        auth: Verifies the tokens of requests over HTTP: a `ResourceServer` of `mcp_bindgen.auth`, or what makes it once
            it is needed; a `ValueError` then ends the command. Over stdio there are no tokens: the user who starts the
            process is its client.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.
        allowed_hosts: The hosts that it may be called by over HTTP, unless the command line says so; see `serve_http`.
        allowed_origins: The web pages that may call it; see `serve_http`.
        log_format: `text` or `json`; see `serve_http`.

    Raises:
        ValueError: There is nothing to serve, or two servers for a revision.

    Command line:
        (nothing): standard input and output.
        --http HOST:PORT: Streamable HTTP at `/mcp`, and HTTP with server-sent events at `/sse`.
        --no-sessions: with --http, every message of a stateful client stands alone, so that any of several processes
            can take it: see `HttpApp`. There is no `/sse` then.
        --store WHERE: with --http, where sessions are kept: in an SQLite FILE, which outlives the process, or in Redis,
            which several workers share, by a URL: `redis://`, `rediss://` or `unix://`. Put a URL with a password into
            the environment variable `MCP_STORE`, or into the file that `MCP_STORE_FILE` names.
        --sse HOST:PORT: HTTP with server-sent events, as of 2024-11-05.
        --allowed-host NAME, --allowed-origin NAME: with --http or --sse, hosts and web pages that are allowed; each may
            be repeated. Without them, `ALLOWED_HOSTS` and `ALLOWED_ORIGINS` count.
        --log-format json: the log as JSON, with a record for each HTTP request; else as `MCP_LOG_FORMAT` says.
    """
    servers = [server for one in served for server in ([one] if isinstance(one, Server) else one.servers())]
    started = _started()
    parser = argparse.ArgumentParser(
        prog=started,
        description=type(servers[-1]).__doc__,
        epilog=f"example: {started} --http 127.0.0.1:8000",
    )
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--http", metavar="HOST:PORT", help="serve Streamable HTTP instead of stdio")
    ways.add_argument("--sse", metavar="HOST:PORT", help="serve HTTP+SSE instead of stdio")
    parser.add_argument("--no-sessions", action="store_true", help="with --http: any worker can take any message")
    parser.add_argument(
        "--store",
        metavar="WHERE",
        help="with --http: keep sessions in a file, or at redis://HOST:PORT [MCP_STORE, or the file in MCP_STORE_FILE]",
    )
    for what, variable in (("host", "ALLOWED_HOSTS"), ("origin", "ALLOWED_ORIGINS")):
        help_ = f"with --http or --sse: a {what} that is allowed in place of the default; may be repeated [{variable}]"
        parser.add_argument(f"--allowed-{what}", action="append", metavar="NAME", help=help_)
    parser.add_argument("--log-format", choices=FORMATS, help="the form of the log on stderr [MCP_LOG_FORMAT]")
    chosen = parser.parse_args()
    for option in ("no_sessions", "store"):
        if getattr(chosen, option) and chosen.http is None:
            parser.error(f"--{option.replace('_', '-')} is for --http")
    for option in ("allowed_host", "allowed_origin"):
        if getattr(chosen, option) and chosen.http is None and chosen.sse is None:
            parser.error(f"--{option.replace('_', '-')} is for --http and --sse")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        use_format(chosen.log_format or log_format)
        common: Any = {
            "revisions": revisions,
            "allowed_hosts": chosen.allowed_host or allowed_hosts,
            "allowed_origins": chosen.allowed_origin or allowed_origins,
            "log_format": chosen.log_format or log_format,
        }
        if chosen.http is not None:
            from mcp_bindgen.http.server.serve import serve_http

            if "@" in (chosen.store or ""):
                log.warning("any user of this machine can read the password in --store; put the URL into MCP_STORE")
            store = _store(chosen.store or (None if chosen.no_sessions else _setting("MCP_STORE")))
            over_http = partial(serve_http, *servers, address=chosen.http, auth=_made(auth), **common)
            _run_quickly(partial(over_http, store=store, sessions=not chosen.no_sessions))
        elif chosen.sse is not None:
            from mcp_bindgen.http.server.serve import serve_sse

            _run_quickly(partial(serve_sse, *servers, address=chosen.sse, auth=_made(auth), **common))
        else:
            anyio.run(partial(_serve_stdio, *servers, revisions=revisions))
    except ValueError as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        leave(130)
        sys.exit(130)
    leave()


def _started() -> str:
    """Return how this program was started, as somebody would type it."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is None or not spec.name:
        return Path(sys.argv[0]).name
    return f"python -m {spec.name.removesuffix('.__main__')}"


def _setting(name: str) -> str | None:
    """Return an environment variable, or the content of the file that NAME_FILE names; raises `ValueError`."""
    file = os.environ.get(f"{name}_FILE")
    value = os.environ.get(name, "").strip()
    if value or not file:
        return value or None
    try:
        value = Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{name}_FILE: {error}") from None
    if not value:
        raise ValueError(f"{name}_FILE: {file} is empty; write the value into it")
    return value


def _store(where: str | None) -> EventStore | None:
    """Return the store for what the command line says; raises `ValueError` where it cannot be used."""
    if where is None:
        return None
    if "://" not in where:
        if re.match(r"(\w\w+)?:", where):  # the rest may be a password, which an error about a file would tell
            raise ValueError(_MALFORMED)
        from mcp_bindgen.cluster.sqlite_store import SqliteEventStore

        try:
            return SqliteEventStore(where)
        except (OSError, sqlite3.Error) as error:
            raise ValueError(f"{where}: {error}") from None
    if find_spec("redis") is None:
        raise ValueError("Redis needs a package that is not installed: pip install 'mcp-bindgen[cluster]'")
    from mcp_bindgen.cluster.redis_store import RedisStore

    try:
        return RedisStore(where)
    except ValueError:  # whose text may have a part of the password
        raise ValueError(_MALFORMED) from None


def _made(auth: AccessPolicy | Callable[[], AccessPolicy] | None) -> AccessPolicy | None:
    return auth() if callable(auth) else auth


def _run_quickly(serving: Callable[[], Awaitable[None]]) -> None:
    """Run on uvloop where it is installed, as uvicorn's own command does."""
    anyio.run(serving, backend_options={"use_uvloop": find_spec("uvloop") is not None})


async def _serve_stdio(*servers: Server, revisions: Sequence[str] | None) -> None:
    async with lifespans(servers):
        await serve(StdioServerTransport(), *servers, revisions=revisions)
