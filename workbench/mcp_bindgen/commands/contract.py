"""`mcp-bindgen contract`: export, compare, derive, generate and check contracts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from mcp_bindgen.cli import options
from mcp_bindgen.cli.options import Commands
from mcp_bindgen.cli.output import print_json, print_report
from mcp_bindgen.cli.terminal import say
from mcp_bindgen.cli.terminal import write as write_text
from mcp_bindgen.contract.comparison import report as contract_report
from mcp_bindgen.contract.comparison.compare import ContractComparison, compare_contracts
from mcp_bindgen.contract.comparison.report import ContractPlaces
from mcp_bindgen.contract.document import contract_of, read_contract, write
from mcp_bindgen.contract.functions import document_of_app
from mcp_bindgen.contract.model import Contract
from mcp_bindgen.contract.names import odd_tools
from mcp_bindgen.report import LOCATED, Format, Report
from mcp_bindgen.report.document import Section
from mcp_bindgen.scaffold.project import Project
from mcp_bindgen.spec.errors import BadInput, locating

from .drift_options import CallersName, Failure, callers_of, fails
from .live import Connection, offers
from .servers import named, public

contract = Commands("Export, compare, check and generate contracts: the tools, prompts and resources of a server.")

Folder = Annotated[Path, typer.Argument(metavar="PROJECT", help="The project's folder.")]
Uses = Annotated[
    Path | None,
    typer.Option("--uses", metavar="DIR", help="Folder of a code base, to list its calls that break."),
]
Source = Annotated[str, typer.Argument(help=f"{options.SERVERS} The file of a contract works too.")]

_DOCUMENTS = (".json", ".yaml", ".yml")
_VERSIONS = re.compile(r"(?P<mark>@|==|:)(?P<versions>[\w.+-]+(?:,[\w.+-]+)+)(?=[\s\"']|$)", re.ASCII)


def contract_at(source: str, connection: Connection, declare: str | None = None) -> Contract:
    """Return the contract in a file, or of a live server.

    Args:
        source: A file, or the words that name a server.
        connection: Options for the connection to a server.
        declare: Client capabilities to declare, `NAME,NAME`.

    Raises:
        BadInput: There is no such file or server, or it does not give a contract.
    """
    return read_contract(Path(source)) if is_document(source) else offers(source, connection, declare)


def is_document(source: str) -> bool:
    """Return whether words name the file of a contract rather than a server."""
    path = Path(source)
    return path.suffix in _DOCUMENTS and (path.exists() or " " not in source) and "://" not in source


def warn_of_names(contract: Contract) -> None:
    """Print the tools with names that hosts may refuse."""
    for name in odd_tools(tool.name for tool in contract.tools):
        say(
            f"warning: hosts may refuse the name of the tool {name!r}; use up to 128 of A-Z a-z 0-9 _ - and .", err=True
        )


def contract_changes(
    comparison: ContractComparison,
    *,
    witness: bool = False,
    new: Path | None = None,
    uses: tuple[Section, list[dict[str, Any]]] | None = None,
) -> Report:
    """Return the report of a comparison.

    Args:
        comparison: The comparison.
        witness: True to include examples.
        new: File of the new contract, to show lines of it.
        uses: The call sites of a code base that break, as a section and as JSON.
    """

    def document() -> Any:
        places = ContractPlaces(new) if new is not None else contract_report.nowhere
        found = contract_report.document(comparison, witness=witness, places=places)
        return found if uses is None else replace(found, sections=[*found.sections, uses[0]])

    def record() -> Any:
        found = contract_report.record(comparison)
        return found if uses is None else {**found, "uses": uses[1]}

    return Report(document, record)


@contract.command("export")
def export(
    server: options.Server,
    out: options.Out = None,
    check: options.Check = False,
    *,
    connection: Connection,
) -> None:
    """Write the contract of a server: every entry as the server sends it.

    A module with an `App` is imported, not started, so options for connections such as `--timeout` have no effect.

    Invalid entries are left out with a warning; `--strict` ends with exit code 1 instead.

    Examples:

    `mcp-bindgen contract export 'npx -y @modelcontextprotocol/server-everything' --out everything.json`

    `mcp-bindgen contract export http://127.0.0.1:8000/mcp --out weather.yaml`

    `mcp-bindgen contract export mcp.json#weather --revision 2025-06-18`

    `mcp-bindgen contract export notes.py --out notes.yaml --check`
    """
    _name_out(out, check=check)
    found = named(server)
    app = None if found.module is None else document_of_app(found.module)
    offered = offers(server, connection) if app is None else contract_of(app, Path(server))
    _write_or_check(offered.document, out, check=check)


def _name_out(out: Path | None, *, check: bool) -> None:
    if check and out is None:
        raise BadInput("--check needs a file to compare with", fix="give --out FILE")


def _write_or_check(document: Mapping[str, Any], out: Path | None, *, check: bool) -> None:
    """Write a document; or report how a file differs from it, and end with exit code 1."""
    if not check or out is None:
        text = write(document, out)
        if out is None:
            write_text(text)
        return
    there = read_contract(out)
    if there.document == document:
        say(f"{out} is up to date.")
        return
    print_report(contract_changes(compare_contracts(there, contract_of(document), callers_of())))
    say(f"{out} is out of date; run the command without --check")
    raise typer.Exit(1)


@contract.command("diff")
def diff(
    old: Source,
    new: Source,
    format: options.ReportFormat = Format.TEXT,
    out: options.Out = None,
    witness: options.Witness = False,
    callers: CallersName = None,
    fail_on: Failure = "breaking",
    uses: Uses = None,
    *,
    connection: Connection,
) -> None:
    """Report the changes from one contract to another, and whether callers of the old one break.

    Each change of a schema is `notation` (callers send and get the same), `compatible`, `breaking` with a value that
    proves it, or `unproven`. Changed texts are listed apart. Exit code 1 for breaking changes only, unless `--fail-on`
    says more.

    With `--uses`, also the calls in a code base that break, through the typed client that `mcp-bindgen client` wrote
    there.

    Examples:

    `mcp-bindgen contract diff everything.json 'npx -y @modelcontextprotocol/server-everything'`

    `mcp-bindgen contract diff v1.yaml v2.yaml --format markdown --out changes.md`

    `mcp-bindgen contract diff v1.yaml http://127.0.0.1:8000/mcp --fail-on text`

    `mcp-bindgen contract diff v1.yaml v2.yaml --callers strict --witness`

    `mcp-bindgen contract diff src/app/weather.contract.json v2.yaml --uses src`
    """
    profile = callers_of(callers)
    before, after = contract_at(old, connection), contract_at(new, connection)
    comparison = compare_contracts(before, after, profile)
    found = None
    if uses is not None:
        from mcp_bindgen.contract.code import uses as contract_uses  # the emitter takes time to load

        calls = contract_uses.broken_uses(before, after, comparison, uses)
        found = contract_uses.use_section(calls, uses), [contract_uses.use_record(one) for one in calls]
    file = Path(new) if format in LOCATED and is_document(new) else None
    print_report(contract_changes(comparison, witness=witness, new=file, uses=found), format, out)
    if fails(fail_on, comparison.changes):
        raise typer.Exit(1)


@contract.command("history")
def history(
    source: Annotated[
        str,
        typer.Argument(
            metavar="DIR|SERVER@V1,V2",
            help="Folder of contracts VERSION.json or NAME-VERSION.json, or COMMAND of a server whose package names "
            "several versions.",
        ),
    ],
    format: options.ReportFormat = Format.TEXT,
    out: options.Out = None,
    callers: CallersName = None,
    fail_on: Failure = "never",
    *,
    connection: Connection,
) -> None:
    """Report what each version of a server means to the callers of the version before.

    The table counts entries by verdict, and those with changed texts. The breaking changes of each step follow, with
    values that prove them. The files of a folder are in the order of their versions; those of a command as given.
    Exit code 0 unless `--fail-on` says otherwise.

    Examples:

    `mcp-bindgen contract history contracts --format html --out history.html`

    `mcp-bindgen contract history 'npx -y @modelcontextprotocol/server-filesystem@2025.8.21,2026.7.4 .'`

    `mcp-bindgen contract history contracts --callers strict --fail-on breaking`
    """
    from mcp_bindgen.contract.comparison import history as report  # the validator takes time to load

    profile = callers_of(callers)
    if Path(source).is_dir():
        contracts, others = report.recorded(Path(source))
        for file in others:
            say(f"warning: {file} is left out: its name has no version", err=True)
    else:
        contracts = [
            report.Recorded(name, version, offers(words, connection)) for name, version, words in _versions(source)
        ]
    found = report.histories(contracts, profile)
    print_report(Report(partial(report.document, found, profile), partial(report.record, found, profile)), format, out)
    if fails(fail_on, (change for one in found for step in one.steps for change in step.changes)):
        raise typer.Exit(1)


def _versions(words: str) -> Iterator[tuple[str, str, str]]:
    """Yield name of the server, version, and the words with this version."""
    match = _VERSIONS.search(words)
    if match is None:
        raise BadInput(
            f"{public(words)!r} is no folder, and no command that names several versions of a package",
            fix="as in: 'npx -y PACKAGE@1.0.0,1.1.0'",
        )
    name = public(words[: match.start()] + words[match.end() :])
    for version in match["versions"].split(","):
        yield name, version, f"{words[: match.start('versions')]}{version}{words[match.end() :]}"


@contract.command("bump")
def bump(
    old: Source,
    new: Source,
    released: Annotated[
        str | None,
        typer.Option("--released", metavar="VERSION", help="Version of OLD; by default its contract states it."),
    ] = None,
    enforce: Annotated[
        bool, typer.Option("--enforce", help="End with exit code 1 if the version in NEW is too low.")
    ] = False,
    json: options.Json = False,
    callers: CallersName = None,
    *,
    connection: Connection,
) -> None:
    """Print the version that Semantic Versioning demands for a changed contract, and the finding that decides.

    A break needs a new major version. Compatible and unproven changes need a new minor version, changed texts and
    notation a new patch version. Below 1.0.0, breaks need a new minor version and all other changes a patch.

    Exit code 0 if a version was printed, 1 if `--enforce` finds the version of NEW too low, 2 for bad input.

    Examples:

    `mcp-bindgen contract bump v1.yaml v2.yaml`

    `mcp-bindgen contract bump released.json http://127.0.0.1:8000/mcp --enforce`

    `mcp-bindgen contract bump v1.yaml v2.yaml --released 1.4.2 --json`
    """
    from mcp_bindgen.contract.comparison.semver import Version, decisive

    profile = callers_of(callers)
    before, after = contract_at(old, connection), contract_at(new, connection)
    stated = released or (before.info or {}).get("version")
    if not isinstance(stated, str):
        raise BadInput(f"{public(old)} states no version of its server", fix="give --released VERSION")
    reason = decisive(compare_contracts(before, after, profile))
    demanded = Version.of(stated).bumped(reason.part)
    given = (after.info or {}).get("version")
    if enforce and not isinstance(given, str):
        raise BadInput(f"{public(new)} states no version of its server", fix="leave out --enforce")
    is_enough = Version.of(given).follows(demanded) if isinstance(given, str) else None
    if json:
        facts = {"old": stated, "new": given, "demanded": str(demanded), "part": reason.part.name.lower()}
        facts |= {"callers": profile.name}
        print_json({**facts, "rule": reason.rule or None, "reason": reason.sentence, "enough": is_enough})
    else:
        say(str(demanded))
        say(f"{reason.part.name.lower()}: {reason.sentence}", err=True)
    if enforce and not is_enough:
        say(f"{public(new)} states version {given}; it must be {demanded} or higher", err=True)
        raise typer.Exit(1)


@contract.command("lower")
def lower(
    server: Source,
    profile: Annotated[
        str, typer.Option("--for", metavar="PROFILE", help="Profile of a model provider or host, or its TOML file.")
    ],
    format: options.ReportFormat = Format.TEXT,
    out: options.Out = None,
    *,
    connection: Connection,
) -> None:
    """Show the tools that a model provider refuses or changes, and the edits of the contract that avoid it.

    Exit code 1 if a tool is refused. `docs/how-to/lowering.md` explains the verdicts; `docs/reference/providers.md`
    lists the profiles.

    Examples:

    `mcp-bindgen contract lower weather.yaml --for openai-strict`

    `mcp-bindgen contract lower 'npx -y @modelcontextprotocol/server-everything' --for gemini --format json`

    `mcp-bindgen contract lower weather.yaml --for claude-code --format github`
    """
    import mcp_bindgen.contract.lowering_report as report
    import mcp_bindgen.lowering as lowering

    with locating(None, lowering.BadProfile):
        known = lowering.profile(profile)
    offered = contract_at(server, connection)
    tools = [lowering.lower(tool.raw, known) for tool in offered.tools]
    places = ContractPlaces(Path(server)).of_tool if format in LOCATED and is_document(server) else report.nowhere
    print_report(
        Report(lambda: report.document(tools, known, places), lambda: report.record(tools, known)), format, out
    )
    if any(one.schema is None for one in tools):
        raise typer.Exit(1)


@contract.command("from-module")
def from_module(
    module: Annotated[str, typer.Argument(metavar="MODULE", help="The import name of a module, or its FILE.py.")],
    out: options.Out = None,
    path: Annotated[
        Path | None, typer.Option("--path", metavar="DIR", help="Folder to import from; by default the current one.")
    ] = None,
    check: options.Check = False,
) -> None:
    """Write the contract of a module's `App`, or of its public functions: one tool for each.

    Types become schemas, defaults become defaults, and the sections of docstrings become descriptions. The return type
    becomes the output schema: an object as it is, any other value except text under `result`.

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
        say(f"Wrote {out}. For a server that calls the functions: mcp-bindgen scaffold server NAME {shown}")


@contract.command("check")
def check(project: Folder = Path(), format: options.ReportFormat = Format.TEXT, out: options.Out = None) -> None:
    """List where a project breaks its contract: missing or mistyped methods, and files that are not up to date.

    Examples:

    `mcp-bindgen contract check`

    `mcp-bindgen contract check --format github`

    `mcp-bindgen contract check servers/weather --format json`
    """
    from mcp_bindgen.contract.code.check import check_contract, report

    found = check_contract(project)
    if (file := Project.read(project).contract) is not None:
        warn_of_names(read_contract(file))
    print_report(report(found), format, out)
    if found:
        raise typer.Exit(1)


@contract.command("generate")
def generate(
    project: Folder = Path(),
    force: options.Force = False,
) -> None:
    """Write the generated files of a project again, from its contract; edited files remain.

    Methods that the contract requires and your class lacks are printed, ready to be pasted.

    Examples:

    `mcp-bindgen contract generate`

    `mcp-bindgen contract generate servers/weather --force`
    """
    from mcp_bindgen.contract.code.regeneration import generate_contract
    from mcp_bindgen.contract.code.server import unwritten

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
        say(f"Missing methods; paste them into your class below {found.source}:")
        write_text(f"\n{stubs}\n")
    if not report.complete:
        raise typer.Exit(1)
    if not report.written and not stubs:
        say("Everything is up to date.")
