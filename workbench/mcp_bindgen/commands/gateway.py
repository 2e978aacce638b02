"""`mcp-bindgen gateway`: serve any server in all revisions."""

from __future__ import annotations

from typing import Annotated

import anyio
import typer

from mcp_bindgen.app import BadOverride
from mcp_bindgen.cli.options import BearerEnv, Env, Header, Server, Timeout, names
from mcp_bindgen.cli.terminal import say
from mcp_bindgen.gateway import Gateway
from mcp_bindgen.gateway.upstream import UNREACHABLE
from mcp_bindgen.runtime.protocol.errors import ProtocolError
from mcp_bindgen.spec.errors import BadInput, locating, printable

from .servers import headers_of, named, public
from .serving import ServerOptions, serve

Revisions = Annotated[
    str | None,
    typer.Option("--serve", metavar="REVISIONS", help="Revisions such as 2025-06-18,2026-07-28; by default all."),
]
Isolated = Annotated[
    bool,
    typer.Option("--isolated", help="A connection for each request that has no session, also of the same user."),
]
MaxConnections = Annotated[
    int, typer.Option("--max-connections", metavar="N", min=1, help="Maximum number of connections to the server.")
]


def gateway(
    server: Server,
    options: ServerOptions = None,
    revisions: Revisions = None,
    isolated: Isolated = False,
    max_connections: MaxConnections = 100,
    timeout: Timeout = 30,
    env: Env = None,
    header: Header = None,
    bearer_env: BearerEnv = None,
) -> None:
    """Serve any server in all revisions, over stdio or HTTP: old clients for new servers, and the reverse.

    Requests, notifications and errors of both sides are passed on, and converted between revisions. The losses are
    printed at the start. Each session has its own connection to the server, which begins again if it is lost.

    Examples:

    `mcp-bindgen gateway 'npx -y @modelcontextprotocol/server-everything' --http 127.0.0.1:8000`

    `mcp-bindgen gateway mcp.json#weather --serve 2025-06-18,2026-07-28`

    `mcp-bindgen gateway https://example.com/mcp --bearer-env TOKEN` serves a remote server over stdio.
    """
    found = named(server, env or (), headers_of(header or (), bearer_env))
    wanted = names(revisions, "--serve") or None
    made = Gateway(
        found.entry,
        auth=found.entry.login_auth(found.login_command(server)),
        timeout=timeout,
        isolated=isolated,
        max_connections=max_connections,
    )
    shown = public(server)
    try:
        offer = anyio.run(made.probe)
    except (ProtocolError, *UNREACHABLE) as error:
        raise BadInput(f"cannot connect to {shown!r}: {printable(str(error))}") from None
    except BadOverride as error:
        raise BadInput(f'"tools" of {shown!r}: {printable(str(error))}') from None
    with locating(None, ValueError):
        losses = made.losses(wanted)
    say(
        f"{offer.info.get('name', shown)} speaks MCP {offer.bindings.REVISION.name}; served: {', '.join(losses)}",
        err=True,
    )
    for revision, lines in losses.items():
        for line in lines:
            say(f"loss in {revision}: {line}", err=True)
    serve(made, "gateway", options or (), {"revisions": wanted})
