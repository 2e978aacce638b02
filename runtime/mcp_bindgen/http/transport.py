"""Entry point of Streamable HTTP and HTTP+SSE, for URLs of `connect` and options of `run`; loads the rest on use."""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mcp_bindgen.runtime.entry_points import EntryPoints, HasSchemes
from mcp_bindgen.runtime.lazy import require
from mcp_bindgen.runtime.logs import log
from mcp_bindgen.runtime.session.targets import Address, Auth, RunOptions

if TYPE_CHECKING:
    from mcp_bindgen.runtime.session.server import Server
    from mcp_bindgen.runtime.session.targets import Provider

    from .server.event_store import EventStore


class StoreEntry(HasSchemes, Protocol):
    """Object of an entry point `mcp_bindgen.stores`; its module imports the standard library and the kernel only."""

    def open(self, where: str, /) -> EventStore:
        """Return the store at a URL; with the scheme `file`, the store in the file at a path.

        Raises:
            ValueError: The store cannot be opened, or a package is not installed. The message holds no password.
        """
        ...


STORES: EntryPoints[StoreEntry] = EntryPoints("mcp_bindgen.stores", "store")


class HttpTransport:
    """Streamable HTTP and HTTP+SSE (MCP, "Transports")."""

    schemes: tuple[str, ...] = ("http", "https")

    def open(self, url: str, headers: Mapping[str, str], auth: Auth | None) -> Address:
        """Return the address for a URL; HTTP+SSE is its fallback.

        Raises:
            NotInstalled: httpx2 is not installed.
            AuthorizationError: `auth` cannot be used at this URL.
        """
        require("Streamable HTTP", "httpx2", extra="http")
        from mcp_bindgen.runtime.connecting import ask_later

        from .client.bounded import shown
        from .client.legacy_sse import sse
        from .client.transport import http

        place = shown(url)
        return Address(
            partial(http, url, headers=headers, auth=auth),
            partial(sse, url, headers=headers, auth=auth, ask_user=ask_later),
            place=place,
            server=f"{place}?{url.partition('?')[2]}",
        )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add `--http`, `--sse` and their options; `run` describes them."""
        parser.epilog = f"example: {parser.prog} --http 127.0.0.1:8000"
        ways = parser.add_mutually_exclusive_group()
        ways.add_argument("--http", metavar="HOST:PORT", help="serve Streamable HTTP instead of stdio")
        ways.add_argument("--sse", metavar="HOST:PORT", help="serve HTTP+SSE instead of stdio")
        parser.add_argument("--no-sessions", action="store_true", help="with --http: any worker can take any message")
        parser.add_argument(
            "--store",
            metavar="WHERE",
            help="with --http: keep sessions in a file, or at redis://HOST:PORT [MCP_STORE, or MCP_STORE_FILE]",
        )
        for noun, variable in (("host", "ALLOWED_HOSTS"), ("origin", "ALLOWED_ORIGINS")):
            help_ = f"with --http or --sse: allow this {noun} instead of the default; repeatable [{variable}]"
            parser.add_argument(f"--allowed-{noun}", action="append", metavar="NAME", help=help_)

    def serve(
        self, servers: Sequence[Server | Provider], chosen: Namespace, options: RunOptions
    ) -> Callable[[], object] | None:
        """Return a function that serves over HTTP; `None` without `--http` or `--sse`.

        Raises:
            ValueError: The options cannot be used, or a package is not installed.
        """
        for option, value, is_allowed, ways in (
            ("--no-sessions", chosen.no_sessions, chosen.http, "--http"),
            ("--store", chosen.store, chosen.http, "--http"),
            ("--allowed-host", chosen.allowed_host, chosen.http or chosen.sse, "--http and --sse"),
            ("--allowed-origin", chosen.allowed_origin, chosen.http or chosen.sse, "--http and --sse"),
        ):
            if value and is_allowed is None:
                raise ValueError(f"{option} is for {ways}")
        if chosen.http is None and chosen.sse is None:
            return None
        try:
            require("Streamable HTTP", "httptools", "starlette", "uvicorn", extra="http")
        except ModuleNotFoundError as error:
            raise ValueError(str(error)) from None
        import anyio

        from .server.serve import serve_http, serve_sse

        store, auth = None, options.get("auth")
        if chosen.http is not None:
            if "@" in (chosen.store or ""):
                log.warning("any user of this machine can read the password in --store; put the URL into MCP_STORE")
            store = open_store(chosen.store or (None if chosen.no_sessions else setting("MCP_STORE")))
        common = partial(
            serve_sse if chosen.http is None else partial(serve_http, store=store, sessions=not chosen.no_sessions),
            *servers,
            address=chosen.sse if chosen.http is None else chosen.http,
            auth=auth() if callable(auth) else auth,
            revisions=options.get("revisions"),
            allowed_hosts=chosen.allowed_host or options.get("allowed_hosts"),
            allowed_origins=chosen.allowed_origin or options.get("allowed_origins"),
            log_format=options.get("log_format"),
        )
        return partial(anyio.run, common, backend_options={"use_uvloop": find_spec("uvloop") is not None})


TRANSPORT = HttpTransport()


def setting(name: str) -> str | None:
    """Return an environment variable, or the content of the file that `NAME_FILE` names; `None` if neither is set.

    Raises:
        ValueError: The file cannot be read, or is empty.
    """
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


def open_store(where: str | None) -> EventStore | None:
    """Return the store for the value of `--store`: a URL, or the path of a file.

    Raises:
        ValueError: It cannot be opened, or a package is not installed. The message holds no password.
    """
    if where is None:
        return None
    scheme, mark, _ = where.partition("://")
    if mark:
        return STORES.find(scheme.lower()).open(where)
    if re.match(r"(\w\w+)?:", where):  # the rest may be a password, which an error about a file would show
        raise ValueError("the URL of the store is malformed; use redis://[USER:PASSWORD@]HOST:PORT")
    if not any("file" in entry.schemes for _, entry in STORES.objects):
        raise ValueError("a store in a file needs mcp_bindgen.sqlite, which is missing; install all of mcp-bindgen")
    return STORES.find("file").open(where)
