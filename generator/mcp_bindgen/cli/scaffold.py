"""`mcp-bindgen scaffold`: start a project that its user owns."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mcp_bindgen.scaffold.files import refuse_occupied, tree, write_new
from mcp_bindgen.scaffold.layout import calls, layout
from mcp_bindgen.scaffold.names import names_of
from mcp_bindgen.scaffold.plan import Plan, plan
from mcp_bindgen.scaffold.project import Kind
from mcp_bindgen.spec import BadInput

from . import live
from .interview import interview
from .options import names
from .terminal import say, write

if TYPE_CHECKING:
    from mcp_bindgen.contract.model import Contract
    from mcp_bindgen.scaffold.functions import Functions

Name = Annotated[str | None, typer.Argument(help="What to call it, as in weather-app; asked for on a terminal.")]
Revisions = Annotated[
    list[str] | None,
    typer.Option("--revision", metavar="R", help="The revision to write it in; a server speaks several, or all."),
]
With = Annotated[
    str | None,
    typer.Option(
        "--with", metavar="NAMES", help="What to offer: tools,prompts,resources,logging, and extensions: tasks"
    ),
]
Transport = Annotated[str | None, typer.Option(metavar="NAMES", help="How messages travel: stdio,http,sse")]
ContractFile = Annotated[
    Path | None, typer.Option("--contract", metavar="FILE", help="The server's tools, prompts and resources.")
]
From = Annotated[
    str | None, typer.Option("--from", metavar="SERVER", help="A live server whose contract to take: command or URL.")
]
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to put the project's folder into.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be written, and write nothing.")]

_EVERYTHING = "npx -y @modelcontextprotocol/server-everything"

scaffold = typer.Typer(help="Start a project of your own.", no_args_is_help=True)


@scaffold.command()
def server(
    name: Name = None,
    revision: Revisions = None,
    with_: With = None,
    transport: Transport = None,
    contract: ContractFile = None,
    from_module: Annotated[
        str | None,
        typer.Option("--from-module", metavar="PKG.MODULE", help="Annotated functions for the server to call."),
    ] = None,
    auth: Annotated[
        bool,
        typer.Option("--auth", help="Want tokens of an authorization server over HTTP, which is then offered too."),
    ] = False,
    out: Out = Path(),
    dry_run: DryRun = False,
) -> None:
    """Start a server: a small project with first answers, tests that pass, and a README.

    Examples:

    `mcp-bindgen scaffold server weather`

    `mcp-bindgen scaffold server weather --with tools,resources --transport stdio,http`

    `mcp-bindgen scaffold server weather --with tools,tasks` makes one whose tool can run as a task.

    `mcp-bindgen scaffold server weather --contract weather.yaml`

    `mcp-bindgen scaffold server weather --from-module tools` makes one that calls the functions of `tools.py`.

    `mcp-bindgen scaffold server weather --auth` makes one that is protected over HTTP.
    """
    transport = "stdio,http" if auth and transport is None else transport
    known, functions = _read(contract), None
    if from_module is not None:
        from mcp_bindgen.scaffold.functions import functions_of

        functions = functions_of(from_module)
        if known is None:
            known, contract = _derive(from_module), Path("contract.json")
    if name is None:
        stated = known[0] if known is not None else None
        name, revision, with_, transport, auth = interview("server", revision, with_, transport, stated, auth=auth)
    _start("server", name, revision, with_, transport, known, contract, out, dry_run, auth=auth, functions=functions)


@scaffold.command()
def client(
    name: Name = None,
    revision: Revisions = None,
    with_: Annotated[
        str | None, typer.Option("--with", metavar="NAMES", help="What to offer: sampling,elicitation,roots")
    ] = None,
    transport: Transport = None,
    contract: ContractFile = None,
    from_: From = None,
    env: live.Env = None,
    out: Out = Path(),
    dry_run: DryRun = False,
) -> None:
    """Start a client: a small project that connects to a server, with tests that pass, and a README.

    Examples:

    `mcp-bindgen scaffold client explorer --with sampling,roots`

    `mcp-bindgen scaffold client explorer --from 'npx -y @modelcontextprotocol/server-everything'`
    """
    if contract is not None and from_ is not None:
        raise BadInput("--contract and --from are two contracts", fix="leave one of them out")
    if name is None:
        name, revision, with_, transport, _ = interview("client", revision, with_, transport, None)
    known, source = _read(contract), contract
    if from_ is not None:
        known, source = _export(from_, env or []), Path("contract.json")
    shown = from_ if from_ is not None and not env else _EVERYTHING
    _start("client", name, revision, with_, transport, known, source, out, dry_run, shown)


def _read(file: Path | None) -> tuple[Contract, str] | None:
    """Return a contract, and the file as it is."""
    if file is None:
        return None
    from mcp_bindgen.contract.document import read_contract

    return read_contract(file), file.read_bytes().decode("utf-8")


def _derive(module: str) -> tuple[Contract, str]:
    """Return the contract of a module's functions, and the file that says it."""
    from mcp_bindgen.contract.document import contract_of
    from mcp_bindgen.contract.functions import document_of_module

    document = document_of_module(module)
    return contract_of(document, Path(module)), _text(document)


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _export(server: str, env: list[str]) -> tuple[Contract, str]:
    """Return the contract of a live server, and the file that says it."""
    contract = live.offers(server, env=env)
    return contract, _text(contract.document)


def _start(
    kind: Kind,
    name: str,
    revisions: list[str] | None,
    with_: str | None,
    transport: str | None,
    known: tuple[Contract, str] | None,
    source: Path | None,
    out: Path,
    dry_run: bool,
    server: str = _EVERYTHING,
    *,
    auth: bool = False,
    functions: Functions | None = None,
) -> None:
    """Plan the project, writes it, and says what to do next."""
    contract, text = known or (None, None)
    if contract is not None and kind == "server":
        from .contract import warn_of_names

        warn_of_names(contract)
    planned = plan(
        names_of(name),
        kind,
        revisions or (),
        names(with_, "--with") if with_ is not None else None,
        names(transport, "--transport") if transport is not None else ("stdio",),
        contract,
        source,
        text,
        auth,
        functions,
    )
    folder = out / name
    refuse_occupied(folder)
    files = layout(planned)
    if not dry_run:
        write_new(folder, files)
    for line in tree(str(folder), files):
        say(line)
    if not dry_run:
        write(_next(planned, folder, server) + "\n")


def _next(planned: Plan, folder: Path, server: str) -> str:
    """Return the commands to go on with; `server` is what a client may look at."""
    source, package = shlex.quote(str(folder / "src")), planned.names.package
    if planned.kind == "server":
        said = next(iter(calls(planned)), "--list")
        first = ["Call it:", f"    mcp-bindgen call 'python -m {package}' {said} --env PYTHONPATH={source}"]
    else:
        first = ["Let it look at a server:", f"    PYTHONPATH={source} python -m {package} {shlex.quote(server)}"]
    return "\n".join(
        [
            "",
            *first,
            "Go on with it:",
            f"    cd {shlex.quote(str(folder))}",
            "    python -m pip install --editable '.[dev]'",
            "    python -m pytest",
        ]
    )
