"""Run servers as the command line says."""

from __future__ import annotations

import argparse
import logging
import sqlite3
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import anyio

from ..core.access import Gate
from ..endpoint.server import Server, lifespans, serve
from ..http.server.event_store.base import EventStore
from ..tasks import leave
from ..transports.stdio import StdioServerTransport


def run_servers(
    servers: Sequence[Server], auth: Gate | Callable[[], Gate] | None, revisions: Sequence[str] | None
) -> None:
    """Serve as the command line says, until the client is gone or the process is stopped: see `run`."""
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
        "--store", metavar="WHERE", help="with --http: keep sessions in a file, or at redis://HOST:PORT"
    )
    chosen = parser.parse_args()
    if chosen.no_sessions and chosen.http is None:
        parser.error("--no-sessions is for --http")
    if chosen.store is not None and chosen.http is None:
        parser.error("--store is for --http")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        if chosen.http is not None:
            from ..http.server.serve import serve_http

            store, sessions = _store(chosen.store), not chosen.no_sessions
            over_http = partial(serve_http, *servers, address=chosen.http, revisions=revisions, auth=_made(auth))
            _run_quickly(partial(over_http, store=store, sessions=sessions))
        elif chosen.sse is not None:
            from ..http.server.serve import serve_sse

            _run_quickly(partial(serve_sse, *servers, address=chosen.sse, revisions=revisions, auth=_made(auth)))
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


def _store(where: str | None) -> EventStore | None:
    """Return the store for what the command line says; raises `ValueError` where it cannot be used."""
    if where is None:
        return None
    if "://" not in where:
        from ..http.server.event_store.sqlite import SqliteEventStore

        try:
            return SqliteEventStore(where)
        except (OSError, sqlite3.Error) as error:
            raise ValueError(f"{where}: {error}") from None
    if find_spec("redis") is None:
        raise ValueError("Redis needs a package that is not installed: pip install 'mcp-bindgen[redis]'")
    from ..http.server.shared_store.redis import RedisStore

    return RedisStore(where)


def _made(auth: Gate | Callable[[], Gate] | None) -> Gate | None:
    return auth() if callable(auth) else auth


def _run_quickly(serving: Callable[[], Awaitable[None]]) -> None:
    """Run on uvloop where it is installed, as uvicorn's own command does."""
    anyio.run(serving, backend_options={"use_uvloop": find_spec("uvloop") is not None})


async def _serve_stdio(*servers: Server, revisions: Sequence[str] | None) -> None:
    async with lifespans(servers):
        await serve(StdioServerTransport(), *servers, revisions=revisions)
