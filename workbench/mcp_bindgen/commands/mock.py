"""`mcp-bindgen mock`: serve a contract with sample values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mcp_bindgen.mock import Mock, read_answers
from mcp_bindgen.spec.errors import locating

from .contract import Source, contract_at
from .live import Connection
from .servers import public
from .serving import ServerOptions, serve

Answers = Annotated[
    Path | None,
    typer.Option("--answers", metavar="FILE", help="JSON or YAML file with fixed answers: tool -> list of answers."),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Selects other sample values.")]


def mock(
    server: Source, options: ServerOptions = None, answers: Answers = None, seed: Seed = 0, *, connection: Connection
) -> None:
    """Serve the tools, prompts and resources of a contract, with valid sample values as results.

    A SERVER is asked for its contract first, and then not used any more. Arguments are validated, and the same call has
    the same result in each run. Clients of all revisions are served.

    Examples:

    `mcp-bindgen mock weather.yaml`

    `mcp-bindgen mock 'npx -y @modelcontextprotocol/server-everything' --http 127.0.0.1:8000`

    `mcp-bindgen mock weather.yaml --answers answers.yaml --seed 7`
    """
    contract = contract_at(server, connection)
    fixed = None if answers is None else read_answers(answers, contract)
    with locating(public(server), ValueError):
        app = Mock(contract, seed=seed, answers=fixed)
    serve(app, "mock", options or ())
