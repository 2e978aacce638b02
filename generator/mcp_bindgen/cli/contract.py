"""`mcp-bindgen contract`: export, compare, derive, generate and check contracts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mcp_bindgen.contract.comparison.verdicts import ContractComparison, Level
from mcp_bindgen.contract.document import contract_of, read_contract, write
from mcp_bindgen.contract.functions import document_of_app, is_app
from mcp_bindgen.contract.model import Contract
from mcp_bindgen.contract.names import odd_tools
from mcp_bindgen.scaffold.project import Project
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.transaction import save

from .diff import FailOn
from .live import Env, Revision, Strict, Timeout, Verbose, offers
from .output import MARKUP, PAGE, page, print_json
from .terminal import say, write_report
from .terminal import write as write_text

contract = typer.Typer(
    help="Contracts: what a server offers, as a document.", no_args_is_help=True, rich_markup_mode=MARKUP
)

Out = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it there: .json, .yaml or .yml.")]
Check = Annotated[
    bool, typer.Option("--check", help="Write nothing: exit with 1 if the file of --out says something else.")
]
Folder = Annotated[Path, typer.Argument(metavar="PROJECT", help="The project's folder.")]
Source = Annotated[
    str,
    typer.Argument(help="The file of a contract, a command in quotes that starts a server, a URL, or FILE.json#name."),
]

_DOCUMENTS = (".json", ".yaml", ".yml")
_LEAST = {FailOn.ANY: Level.SAFE, FailOn.RISKY: Level.RISKY, FailOn.BREAKING: Level.BREAKING}


class Form(StrEnum):
    """The form of a report."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


def contract_at(
    source: str,
    revision: str | None = None,
    *,
    timeout: float = 30,
    env: Sequence[str] = (),
    verbose: bool = False,
    strict: bool = False,
    declare: str | None = None,
) -> Contract:
    """Return the contract in a file, or that of a live server.

    Args:
        source: A file, a command line, a URL, or `FILE.json#name`.
        revision: The revision to speak with a server; by default the best.
        timeout: Seconds to wait for each of its answers.
        env: `KEY=VALUE` settings for a server that is started.
        verbose: Whether its stderr is shown.
        strict: Whether an entry of a server that is not valid ends the command, and is not just left out.
        declare: The capabilities to declare to a server, `NAME,NAME`.

    Raises:
        BadInput: There is no such file or server, or what it says is no contract.
    """
    if is_document(source):
        return read_contract(Path(source))
    return offers(source, revision, timeout=timeout, env=env, verbose=verbose, strict=strict, declare=declare)


def is_document(source: str) -> bool:
    """Return whether words name the file of a contract, and no server."""
    path = Path(source)
    return path.suffix in _DOCUMENTS and (path.exists() or " " not in source) and "://" not in source


def warn_of_names(contract: Contract) -> None:
    """Say on stderr which tools have names that hosts may refuse."""
    for name in odd_tools(tool.name for tool in contract.tools):
        said = f"the tool {name!r} has a name that hosts may refuse; use up to 128 of A-Z a-z 0-9 _ - and ."
        say(f"warning: {said}", err=True)


@contract.command("export")
def export(
    server: Annotated[
        str,
        typer.Argument(
            help="A command in quotes that starts a server, a URL, FILE.json#name, or an App: FILE.py, PKG.MODULE:NAME."
        ),
    ],
    out: Out = None,
    check: Check = False,
    revision: Revision = None,
    timeout: Timeout = 30,
    env: Env = None,
    verbose: Verbose = False,
    strict: Strict = False,
) -> None:
    """Write down what a server offers; every entry stands there as the server says it.

    An `App` is imported, not started.

    Entries that are not valid are left out, and stderr says which; `--strict` ends with exit code 1 instead.

    Examples:

    `mcp-bindgen contract export 'npx -y @modelcontextprotocol/server-everything' --out everything.json`

    `mcp-bindgen contract export http://127.0.0.1:8000/mcp --out weather.yaml`

    `mcp-bindgen contract export mcp.json#weather --revision 2025-06-18`

    `mcp-bindgen contract export notes.py --out notes.yaml --check`
    """
    _name_out(out, check=check)
    if is_app(server):
        document: Mapping[str, Any] = document_of_app(server)
        contract_of(document, Path(server))
    else:
        document = offers(server, revision, timeout=timeout, env=env or (), verbose=verbose, strict=strict).document
    _write_or_check(document, out, check=check)


def _name_out(out: Path | None, *, check: bool) -> None:
    if check and out is None:
        raise BadInput("--check compares with a file", fix="name it with --out")


def _write_or_check(document: Mapping[str, Any], out: Path | None, *, check: bool) -> None:
    """Write a document; or say what a file says otherwise, and end with exit code 1."""
    if not check or out is None:
        text = write(document, out)
        if out is None:
            write_text(text)
        return
    there = read_contract(out)
    if there.document == document:
        say(f"{out} is up to date.")
        return
    from mcp_bindgen.contract.comparison.compare import compare_contracts  # the validator takes time to load

    _print(compare_contracts(there, contract_of(document)), Form.TEXT, None, witness=False)
    say(f"{out} is not up to date: run the same without --check")
    raise typer.Exit(1)


@contract.command("diff")
def diff(
    old: Source,
    new: Source,
    format: Annotated[Form, typer.Option("--format", help="What the report looks like.")] = Form.TEXT,
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write it there.")] = None,
    witness: Annotated[bool, typer.Option("--witness", help="Show a value that proves each change.")] = False,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Exit with 1 when such a change is found.")
    ] = FailOn.BREAKING,
    revision: Revision = None,
    timeout: Timeout = 30,
    env: Env = None,
    verbose: Verbose = False,
    strict: Strict = False,
) -> None:
    """Say what changed from one contract to another, and whether existing clients break.

    Examples:

    `mcp-bindgen contract diff everything.json 'npx -y @modelcontextprotocol/server-everything'`

    `mcp-bindgen contract diff v1.yaml v2.yaml --format markdown --output changes.md`

    `mcp-bindgen contract diff v1.yaml http://127.0.0.1:8000/mcp --fail-on risky`
    """
    from mcp_bindgen.contract.comparison.compare import compare_contracts  # the validator takes time to load

    settings = env or ()
    sides = [
        contract_at(one, revision, timeout=timeout, env=settings, verbose=verbose, strict=strict) for one in (old, new)
    ]
    comparison = compare_contracts(*sides)
    _print(comparison, format, output, witness=witness)
    if fail_on is not FailOn.NEVER and any(finding.level >= _LEAST[fail_on] for finding in comparison.findings):
        raise typer.Exit(1)


def _print(comparison: ContractComparison, format: Form, output: Path | None, *, witness: bool) -> None:
    from mcp_bindgen.contract.comparison import report

    width, colour = page() if output is None else (PAGE, False)
    if format is Form.JSON:
        text = report.json_text(comparison)
    elif format is Form.MARKDOWN:
        text = report.markdown(comparison)
    else:
        text = report.text(comparison, width=width, colour=colour, witness=witness)
    if output is None:
        write_report(text)
    else:
        save(output, text, "give another --output")


@contract.command("from-module")
def from_module(
    module: Annotated[str, typer.Argument(metavar="PKG.MODULE", help="The import name of a module.")],
    out: Out = None,
    path: Annotated[
        Path | None, typer.Option("--path", metavar="DIR", help="The folder to import it from; by default this one.")
    ] = None,
    check: Check = False,
) -> None:
    """Write the contract of a module's public functions: one tool for each.

    Types become schemas, defaults become defaults, and the sections of docstrings become descriptions. What a function
    returns becomes the output schema: an object as it is, any other value but text under `result`.

    Examples:

    `mcp-bindgen contract from-module weather.tools --out contract.yaml`

    `mcp-bindgen contract from-module tools --path src/weather --out contract.yaml --check`

    `mcp-bindgen scaffold server weather --from-module tools` makes a server that calls them.
    """
    from mcp_bindgen.contract.functions import document_of_module

    _name_out(out, check=check)
    document = document_of_module(module, path)
    warn_of_names(contract_of(document, Path(module)))
    _write_or_check(document, out, check=check)
    if out is not None and not check and path is None:
        shown = shlex.join(["--contract", str(out), "--from-module", module])
        say(f"{out} is written. A server that calls the functions: mcp-bindgen scaffold server NAME {shown}")


@contract.command("check")
def check(
    project: Folder = Path(), as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """Say where a project does not keep to its contract: what is missing, mistyped or not up to date.

    Examples:

    `mcp-bindgen contract check`

    `mcp-bindgen contract check --json`

    `mcp-bindgen contract check servers/weather`
    """
    from mcp_bindgen.scaffold.check.contract_check import check_contract

    problems = check_contract(project)
    if (file := Project.read(project).contract) is not None:
        warn_of_names(read_contract(file))
    if as_json:
        print_json([{**asdict(problem), "file": str(problem.file)} for problem in problems])
    for problem in () if as_json else problems:
        say(str(problem))
    if problems:
        raise typer.Exit(1)
    if as_json:
        return
    say("The project keeps to its contract.")


@contract.command("generate")
def generate(
    project: Folder = Path(),
    force: Annotated[bool, typer.Option("--force", help="Move files that were edited aside.")] = False,
) -> None:
    """Write the generated files of a project again, from its contract; files that were edited are left.

    Methods that your class has to have now, and has not, are printed to be pasted into it.

    Examples:

    `mcp-bindgen contract generate`

    `mcp-bindgen contract generate servers/weather --force`
    """
    from mcp_bindgen.scaffold.contract_server import unwritten
    from mcp_bindgen.scaffold.generated.regeneration import generate_contract

    report = generate_contract(project, force=force)
    for line in report.lines():
        say(line)
    found, stubs = Project.read(project), ""
    if found.kind == "server" and found.contract is not None:
        contract = read_contract(found.contract)
        warn_of_names(contract)
        stubs = unwritten(found, contract)
    if stubs:
        say()
        say(f"Not written yet; paste it into your class below {found.source}:")
        write_text(f"\n{stubs}\n")
    if not report.complete:
        raise typer.Exit(1)
    if not report.written and not stubs:
        say("All is up to date.")
