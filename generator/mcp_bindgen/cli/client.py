"""`mcp-bindgen client`: write a typed client of one server."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit, urlunsplit

import typer

from mcp_bindgen.contract.comparison.compare import compare_contracts
from mcp_bindgen.contract.comparison.report import text
from mcp_bindgen.contract.model import Contract
from mcp_bindgen.protocol import build
from mcp_bindgen.scaffold.check.client_module import ClientModule
from mcp_bindgen.scaffold.generated.replacement import replace_generated
from mcp_bindgen.scaffold.generated.typed_client import client_class, client_files
from mcp_bindgen.scaffold.plan import default_revision
from mcp_bindgen.scaffold.project import is_module
from mcp_bindgen.spec import BadInput, Store

from .contract import contract_at
from .declared import Declare
from .live import Env, Revision, Strict, Timeout, Verbose
from .output import page
from .terminal import say, write_report


def client(
    server: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="SERVER",
            help="A command in quotes that starts a server, its URL, FILE.json#name of an mcpServers file, "
            "or the file of a contract.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE.py", help="The module to write.")],
    name: Annotated[str | None, typer.Option("--name", metavar="CLASS", help="The name of the class.")] = None,
    revision: Revision = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; say whether the server is still what the module expects.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Move files that were edited aside.")] = False,
    timeout: Timeout = 30,
    env: Env = None,
    verbose: Verbose = False,
    strict: Strict = False,
    declare: Declare = None,
) -> None:
    """Write a typed client of a server: a module with a method for each tool, prompt and resource.

    The contract that it was made of is saved beside it. With `--check` the server is compared with that contract: the
    exit code is 1 when a change breaks the client, or when the module is not what the contract gives.

    Entries of a server that are not valid are left out, and stderr and the saved contract say which; `--strict` ends
    with exit code 1 instead.

    Examples:

    `mcp-bindgen client --from 'npx -y @modelcontextprotocol/server-everything' --out src/app/everything.py`

    `mcp-bindgen client --from servers.json#weather --out src/app/weather.py --check`

    `mcp-bindgen client --from servers.json#notes --out src/app/notes.py --declare elicitation,sampling,roots`
    """
    if out.suffix != ".py" or not is_module(out.stem):
        raise BadInput("is not the name of a module", file=out, fix="give --out a file like everything.py")
    if name is not None and not is_module(name):
        raise BadInput(f"{name!r} is not the name of a class", fix="use letters, digits and _, and no keyword")
    if check and (force or name is not None):
        raise BadInput("--check writes nothing, so --force and --name mean nothing", fix="leave them out")
    if check:
        _check(ClientModule.read(out), server, revision, env or (), timeout, verbose, strict, declare)
        return
    contract = contract_at(
        server, revision, timeout=timeout, env=env or (), verbose=verbose, strict=strict, declare=declare
    )
    protocol = build(Store().effective(revision or contract.revision or default_revision(Store())))
    class_name = name or client_class(out.stem)
    words = ["mcp-bindgen", "client", "--from", _portable(server), "--out", _portable(str(out))]
    words += ["--name", name] if name else []
    words += ["--revision", revision] if revision else []
    words += ["--declare", declare] if declare else []
    files = client_files(contract, protocol, class_name, out.stem, _source(contract, server), shlex.join(words))
    report = replace_generated(out.parent, files, force=force, sweep=False)
    for line in report.lines():
        say(line)
    say(f"{class_name}: {_summary(contract)}, MCP {protocol.revision}")
    if not report.complete:
        raise typer.Exit(1)


def _check(
    module: ClientModule,
    server: str,
    revision: str | None,
    env: Sequence[str],
    timeout: float,
    verbose: bool,
    strict: bool,
    declare: str | None,
) -> None:
    """Say what is wrong with a module and its server; exits with 1 if that breaks the client."""
    problems = list(module.problems())
    for problem in problems:
        say(str(problem))
    asked = revision or module.revision
    live = contract_at(server, asked, timeout=timeout, env=env, verbose=verbose, strict=strict, declare=declare)
    comparison = compare_contracts(module.contract(), live)
    width, colour = page()
    write_report(text(comparison, width=width, colour=colour))
    if problems or comparison.breaking:
        raise typer.Exit(1)


def _source(contract: Contract, server: str) -> str:
    """Return what a contract was read from: the server's name and version, or else how it was named."""
    info = contract.info or {}
    return " ".join(str(info[key]) for key in ("name", "version") if info.get(key)) or _portable(server)


def _portable(word: str) -> str:
    """Return a word of the command line as it may stand in a file that others read.

    A path as it can be given on another machine too, and a URL without what may be secret: passwords and queries.
    """
    if word.startswith(("http://", "https://")):
        parts = urlsplit(word)
        query = "..." if parts.query else ""
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, ""))
    try:
        words = shlex.split(word)
    except ValueError:
        return word
    if len(words) < 2 or Path(word).exists():
        return _near(word)
    program, *arguments = words
    name = Path(program).name if Path(program).is_absolute() else program
    return shlex.join([name, *map(_near, arguments)])


def _near(path: str) -> str:
    """Return a path from here, and any other word as it is."""
    return Path(os.path.relpath(path)).as_posix() if Path(path).is_absolute() else path


def _summary(contract: Contract) -> str:
    counts = {
        "tools": len(contract.tools),
        "prompts": len(contract.prompts),
        "resources": len(contract.resources),
        "templates": len(contract.templates),
    }
    return (
        ", ".join(f"{count} {what if count != 1 else what[:-1]}" for what, count in counts.items() if count)
        or "nothing"
    )
