"""Commands that serve: they take the options that servers take."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from mcp_bindgen.runtime import serving
from mcp_bindgen.runtime.session.targets import Provider, RunOptions
from mcp_bindgen.spec import BadInput

ServerOptions = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SERVER_OPTIONS",
        help="Options of servers: --http, --sse, --no-sessions, --store, --allowed-host, --allowed-origin, "
        "--log-format, --log-level. Without --http or --sse it serves stdio.",
    ),
]


def serve(served: Provider, command: str, options: Sequence[str], run_options: RunOptions | None = None) -> None:
    """Serve until the client or the process ends, as `mcp_bindgen.runtime.run` does.

    Args:
        served: The server.
        command: Name of the command, for errors.
        options: Options of servers.
        run_options: Other options of `run`.

    Raises:
        BadInput: An option has no dashes.
    """
    if options and not options[0].startswith("-"):
        raise BadInput(f"unexpected argument {options[0]!r}", fix="give one SERVER, a command in quotes")
    sys.argv = [f"mcp-bindgen {command}", *options]
    gc.enable()  # commands that end soon do without it
    serving.run(served, **(run_options or {}))
