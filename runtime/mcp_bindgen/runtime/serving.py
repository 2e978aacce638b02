"""Entry point of server programs: serve over the transport that the command line chooses."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import anyio

from .concurrency import end_process
from .logs import FORMATS, LEVELS, write_to_stderr
from .session.endpoint import all_served, all_servers, lifespans, serve
from .session.server import Server
from .transports.pipes import StdioServerTransport

if TYPE_CHECKING:
    from .session.targets import Provider, RunOptions, TransportEntry


def run(*served: Server | Provider, **options: Unpack[RunOptions]) -> None:
    """Serve over stdio, or over the transport that the command line chooses, until the client or the process ends.

    Args:
        served: Servers, at most one for each revision, or objects that provide servers; the other revisions are served
            by conversion.
        options: All are optional.

            - `auth`: Access policy that verifies the tokens of requests over HTTP, or a function that makes it when it
              is needed; a `ValueError` of the function ends the command. Stdio has no tokens: its client is the user
              who starts the process.
            - `revisions`: The revisions to serve; by default all that the servers can serve.
            - `allowed_hosts`: Allowed values of `Host` of HTTP requests, unless the command line says otherwise.
            - `allowed_origins`: Allowed origins of web pages, unless the command line says otherwise.
            - `log_format`: `text` or `json`.
            - `log_level`: `debug`, `info`, `warning` or `error`.

    Raises:
        TypeError: There is no such option.
        ValueError: There is nothing to serve, or there are two servers for a revision.

    Command line:
        (nothing): standard input and output.
        --log-format json: Write the log as JSON, with a record for each HTTP request; by default `MCP_LOG_FORMAT`.
        --log-level LEVEL: Write records of this level and above; by default `MCP_LOG_LEVEL`, else INFO for your own
            loggers and WARNING for those of this package.

        Installed transports add further options, which `--help` lists; Streamable HTTP adds:

        --http HOST:PORT: Streamable HTTP at `/mcp`, and HTTP with server-sent events at `/sse`.
        --no-sessions: With --http: each message of a stateful client is served by itself, by any of several processes.
            `/sse` is not served then.
        --store WHERE: With --http: keep sessions in an SQLite FILE, which outlives the process, or in Redis, which
            several workers share, at a URL `redis://`, `rediss://` or `unix://`. Put a URL with a password into the
            environment variable `MCP_STORE`, or into the file that `MCP_STORE_FILE` names.
        --sse HOST:PORT: HTTP with server-sent events, as of 2024-11-05.
        --allowed-host NAME, --allowed-origin NAME: With --http or --sse: allow a host or the origin of web pages;
            repeatable. The default is `ALLOWED_HOSTS` and `ALLOWED_ORIGINS`.
    """
    if options:
        from .session.targets import RunOptions  # a server over stdio does without it

        for unknown in options.keys() - RunOptions.__annotations__.keys():
            raise TypeError(f"run() got an unexpected keyword argument {unknown!r}")
    servers, has_options = all_served(served), any(argument.startswith("-") for argument in sys.argv[1:])
    described = type(all_servers(servers)[-1]).__doc__ if has_options else None
    parser = argparse.ArgumentParser(prog=_program(), description=described)
    parser.add_argument("--log-format", choices=FORMATS, help="the format of the log on stderr [MCP_LOG_FORMAT]")
    parser.add_argument("--log-level", choices=LEVELS, help="the lowest level of the log [MCP_LOG_LEVEL]")
    try:
        transports = _transports(parser) if has_options else ()
        chosen = parser.parse_args()
        options["log_format"] = chosen.log_format or options.get("log_format")
        write_to_stderr(chosen.log_level or options.get("log_level"))
        if options["log_format"] or "MCP_LOG_FORMAT" in os.environ:
            from .log_format import use_format

            use_format(options["log_format"])
        works = [work for one in transports if (work := one.serve(servers, chosen, options)) is not None]
        if len(works) > 1:
            raise ValueError("the options choose several transports; choose one")
        work = works[0] if works else partial(anyio.run, partial(_serve_stdio, servers, options.get("revisions")))
        work()
    except ValueError as error:
        parser.error(str(error))
    except KeyboardInterrupt:
        end_process(130)
        sys.exit(130)
    end_process()


def _transports(parser: argparse.ArgumentParser) -> Sequence[TransportEntry]:
    """Add the options of installed transports to the parser and return them."""
    from .session.targets import TRANSPORTS

    for distribution, transport in TRANSPORTS.objects:
        try:
            transport.add_arguments(parser)
        except argparse.ArgumentError as error:
            raise ValueError(f"{distribution} adds an option of another distribution: {error}") from None
    return [transport for _, transport in TRANSPORTS.objects]


async def _serve_stdio(servers: Sequence[Provider], revisions: Sequence[str] | None) -> None:
    async with lifespans(servers):
        await serve(StdioServerTransport(), *servers, revisions=revisions)


def _program() -> str:
    """Return the command that started this program."""
    spec = sys.modules["__main__"].__spec__
    return f"python -m {spec.name.removesuffix('.__main__')}" if spec and spec.name else Path(sys.argv[0]).name
