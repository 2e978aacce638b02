"""Run what is to be served from the command line: `run(app)`, `run(tools)`, `run(Weather())`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import ModuleType
from typing import Protocol

from ..core.access import Gate
from ..endpoint.server import Server
from ..entrypoints.run import run_servers


class Served(Protocol):
    """Something that has servers: an `App`, or an object of a contract's class."""

    def servers(self) -> Sequence[Server]:
        """Return a server for each revision."""
        ...


def run(
    *served: Server | Served | ModuleType,
    auth: Gate | Callable[[], Gate] | None = None,
    revisions: Sequence[str] | None = None,
    allowed_hosts: Collection[str] | None = None,
    allowed_origins: Collection[str] | None = None,
    log_format: str | None = None,
) -> None:
    """Serve until the client is gone or the process is stopped: stdio, or what the command line asks for.

    Args:
        served: An `App`, a module, an object of a contract's class, or servers, at most one for each revision; the
            other revisions are served by conversion. Of a module the `App` is served that it has, or else each of its
            public functions is a tool.
        auth: Verifies the tokens of requests over HTTP: a `ResourceServer` of `runtime.auth`, or what makes it once it
            is needed; a `ValueError` then ends the command. Over stdio there are no tokens: who starts the process is
            its client.
        revisions: The revisions to serve; by default all that one of the servers can be made to serve.
        allowed_hosts: The hosts that it may be called by over HTTP, unless the command line says so; see `serve_http`.
        allowed_origins: The web pages that may call it; see `serve_http`.
        log_format: `text` or `json`; see `serve_http`.

    Raises:
        ValueError: There is nothing to serve, or two servers for a revision; `BadFunction` where a function of a module
            cannot be a tool.

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
    servers = [server for one in served for server in _servers(one)]
    run_servers(servers, auth, revisions, allowed_hosts, allowed_origins, log_format)


def _servers(served: Server | Served | ModuleType) -> Sequence[Server]:
    if isinstance(served, Server):
        return [served]
    if isinstance(served, ModuleType):
        from .app import App  # which other servers need not wait for

        found = (value for value in vars(served).values() if isinstance(value, App))
        return (next(found, None) or App.of_module(served)).servers()
    return served.servers()
