"""`mcp-bindgen client`: write a typed client of one server."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mcp_bindgen.cli.options import Check, Declare, Force, ModuleLanguage, Name, Out, RequiredFrom
from mcp_bindgen.cli.output import print_report
from mcp_bindgen.cli.terminal import say
from mcp_bindgen.cli.terminal import write as write_text
from mcp_bindgen.contract.code.check import report
from mcp_bindgen.contract.code.client_module import ClientModule
from mcp_bindgen.contract.code.declarations import TITLE, Language, declarations
from mcp_bindgen.contract.code.typed_client import client_class, client_files
from mcp_bindgen.contract.code.typescript_client import CALLS, TYPESCRIPT
from mcp_bindgen.contract.comparison.compare import compare_contracts
from mcp_bindgen.contract.model import LISTINGS, Contract
from mcp_bindgen.drift.changes import Verdict
from mcp_bindgen.ir import build
from mcp_bindgen.report.document import plural
from mcp_bindgen.runtime.connecting import scheme_of
from mcp_bindgen.scaffold.plan import default_revision
from mcp_bindgen.scaffold.project import is_module
from mcp_bindgen.scaffold.replacement import replace_generated
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.transaction import save

from .contract import contract_at, contract_changes
from .drift_options import callers_of
from .live import Connection
from .servers import public

DeclarationsIn = Annotated[
    Language | None,
    typer.Option("--declarations", help="Write only declarations of the tools, for the context of a model."),
]
Budget = Annotated[
    int | None, typer.Option("--budget", metavar="TOKENS", min=1, help="Estimated tokens that declarations may have.")
]
Select = Annotated[
    str, typer.Option("--select", metavar="WORDS", help="Declare only tools that fit words, the best first.")
]


def client(
    server: RequiredFrom,
    out: Out = None,
    name: Name = None,
    check: Check = False,
    force: Force = False,
    declare: Declare = None,
    language: ModuleLanguage = None,
    declarations_in: DeclarationsIn = None,
    budget: Budget = None,
    select: Select = "",
    *,
    connection: Connection,
) -> None:
    """Write a typed client of a server: a module with a method or function for each tool, prompt and resource.

    `--out` names the module, `.py` or `.ts`. Its contract is saved beside it. `--check` compares the server with that
    contract: the exit code is 1 if a change breaks the client, or if the module does not match the contract.

    `--declarations` writes only names, types and a line of description of each tool, to `--out` or standard output.
    Within `--budget`, descriptions become shorter, shared arguments become types with a name, and then the last tools
    are listed by name only.

    Invalid entries of a server are left out with a warning; `--strict` ends with exit code 1 instead.

    Examples:

    `mcp-bindgen client --from 'npx -y @modelcontextprotocol/server-everything' --out src/app/everything.py`

    `mcp-bindgen client --from servers.json#weather --language typescript --out src/weather.ts`

    `mcp-bindgen client --from servers.json#weather --out src/app/weather.py --check`

    `mcp-bindgen client --from servers.json#notes --out src/app/notes.py --declare elicitation,sampling,roots`

    `mcp-bindgen client --from servers.json#github --declarations typescript --budget 4000 --select 'pull request'`
    """
    if declarations_in is not None:
        if check or language or name is not None:
            raise BadInput("--declarations has no --check, --language or --name", fix="leave them out")
        if out and out.is_file() and not force and TITLE not in out.read_text("utf-8", "replace")[: len(TITLE) + 4]:
            raise BadInput("these are no declarations of ours", file=out, fix="choose another file, or add --force")
        made = declarations(contract_at(server, connection, declare), declarations_in, budget, select)
        write_text(made.text) if out is None else save(out, made.text, "choose another file")
        if made.by_name:
            say(f"{plural(len(made.by_name), 'tool')} by name only; about {made.tokens} tokens", err=True)
        return
    if out is None or budget is not None or select:
        missing = "there is no module to write" if out is None else "--budget and --select are for declarations"
        raise BadInput(missing, fix="add --out FILE.py" if out is None else "add --declarations typescript")
    found = {".py": "python", TYPESCRIPT: "typescript"}.get(out.suffix)
    is_python = found == "python"
    if found != (language or found or "") or out.name == CALLS or (is_python and not is_module(out.stem)):
        fix = "give --out a file like everything.py, or everything.ts for TypeScript"
        raise BadInput("this is not the name of a module", file=out, fix=fix)
    if name is not None and not is_module(name):
        raise BadInput(f"{name!r} is not the name of a class", fix="use letters, digits and _, and no keyword")
    if name is not None and not is_python:
        raise BadInput("--name names a class, which clients in TypeScript do not have", fix="leave it out")
    if check and (force or name is not None):
        raise BadInput("--check writes nothing, so --force and --name have no effect", fix="leave them out")
    revision = connection.revision
    if check:
        _check(ClientModule.read(out), server, connection, declare)
        return
    contract = contract_at(server, connection, declare)
    protocol = build(Store().effective(revision or contract.revision or default_revision(Store())))
    class_name = name or client_class(out.stem)
    words = ["mcp-bindgen", "client", "--from", _portable(server), "--out", _portable(str(out))]
    words += ["--name", name] if name else []
    words += ["--revision", revision] if revision else []
    words += ["--declare", declare] if declare else []
    for option, pairs in (("--env", connection.env), ("--header", connection.header)):
        words += [word for pair in pairs or () for word in (option, f"{pair.partition('=')[0]}=...")]
    words += ["--bearer-env", connection.bearer_env] if connection.bearer_env else []
    files = client_files(contract, protocol, class_name, out.name, _source(contract, server), shlex.join(words))
    broken = _broken(out, contract)
    report = replace_generated(out.parent, files, force=force, sweep=False)
    for line in report.lines():
        say(line)
    say(f"{class_name if is_python else out.name}: {_summary(contract)}, MCP {protocol.revision}")
    if broken and report.complete:
        more = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
        say(f"warning: breaks code of the earlier client: {broken[0]}{more}; --check lists this in advance", err=True)
    if not report.complete:
        raise typer.Exit(1)


def _broken(out: Path, contract: Contract) -> list[str]:
    """Return the changes since the module was written that break its callers; none if there was no module."""
    try:
        before = ClientModule.read(out).contract()
    except BadInput:
        return []
    found = compare_contracts(before, contract, callers_of()).findings
    return [finding.sentence for finding in found if finding.verdict is Verdict.BREAKING]


def _check(module: ClientModule, server: str, connection: Connection, declare: str | None) -> None:
    """Report the problems of a module and its server; end with exit code 1 if they break the client."""
    problems = list(module.problems())
    if problems:
        print_report(report(problems))
    live = contract_at(server, replace(connection, revision=connection.revision or module.revision), declare)
    comparison = compare_contracts(module.contract(), live, callers_of())
    print_report(contract_changes(comparison))
    if problems or comparison.verdict is Verdict.BREAKING:
        raise typer.Exit(1)


def _source(contract: Contract, server: str) -> str:
    """Return name and version of a contract's server, or else the words that named it."""
    info = contract.info or {}
    return " ".join(str(info[key]) for key in ("name", "version") if info.get(key)) or _portable(server)


def _portable(word: str) -> str:
    """Return a word of the command line for a file that is shared: paths are relative, and there are no secrets."""
    word = public(word)
    if scheme_of(word) is not None:
        return word
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
    """Return an absolute path relative to the current folder, and any other word unchanged."""
    return Path(os.path.relpath(path)).as_posix() if Path(path).is_absolute() else path


def _summary(contract: Contract) -> str:
    counts = [plural(len(found), LISTINGS[member].kind) for member, found in contract.entries.items() if found]
    return ", ".join(counts) or "nothing"
