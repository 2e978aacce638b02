"""`mcp-bindgen diff`: report what changed between revisions, what breaks, for whom, and what to do."""

from __future__ import annotations

import sys
from datetime import date
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from mcp_bindgen.diff import compare
from mcp_bindgen.diff.accept import Accepted, accept, read_acceptances
from mcp_bindgen.diff.finding import Plane, Severity
from mcp_bindgen.diff.reports import Format, Style, render
from mcp_bindgen.diff.select import Selection
from mcp_bindgen.diff.source import load
from mcp_bindgen.spec import Store
from mcp_bindgen.spec.semantics import merge_semantics, read_semantics
from mcp_bindgen.spec.transaction import save

from .options import names
from .output import PAGE, page, print_json, say_corrections


class Role(StrEnum):
    """The sender of a message."""

    CLIENT = "client"
    SERVER = "server"


class Level(StrEnum):
    """The severity of a finding."""

    INFO = "info"
    RISKY = "risky"
    BREAKING = "breaking"


class FailOn(StrEnum):
    """The least severe finding with which the command exits with 1."""

    NEVER = "never"
    ANY = "any"
    RISKY = "risky"
    BREAKING = "breaking"


_LEAST = {FailOn.ANY: Severity.INFO, FailOn.RISKY: Severity.RISKY, FailOn.BREAKING: Severity.BREAKING}


def diff(
    revisions: Annotated[
        list[str] | None,
        typer.Argument(metavar="OLD NEW", help="Revisions, schema files, or one chain: 2024-11-05..2026-07-28"),
    ] = None,
    format: Annotated[Format, typer.Option("--format", help="What the report looks like.")] = Format.TEXT,
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write it there.")] = None,
    witness: Annotated[bool, typer.Option("--witness", help="Show a value that proves each change.")] = False,
    role: Annotated[Role | None, typer.Option("--role", help="Only messages that this side sends.")] = None,
    method: Annotated[list[str] | None, typer.Option("--method", metavar="NAME", help="Only this method.")] = None,
    capability: Annotated[
        str | None, typer.Option("--capability", metavar="NAMES", help="Only what needs these: tools,prompts")
    ] = None,
    plane: Annotated[list[Plane] | None, typer.Option("--plane", help="Only what shows there.")] = None,
    min_severity: Annotated[
        Level, typer.Option("--min-severity", help="Only what is at least as severe.")
    ] = Level.INFO,
    accepted: Annotated[
        Path | None, typer.Option("--accept", metavar="FILE", help="Leave out the changes accepted there.")
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Exit with 1 when such a change is left.")
    ] = FailOn.NEVER,
    semantics: Annotated[
        Path | None,
        typer.Option("--semantics", metavar="FILE", help="Facts that schema files cannot state, added to ours."),
    ] = None,
    json_schema: Annotated[bool, typer.Option("--json-schema", help="Print the JSON Schema of --format json.")] = False,
) -> None:
    """Say what changed between two revisions: what breaks, for whom, and what to do.

    The first lines say whether an old client works with a new server, and a new client with an old server.

    Examples:

    `mcp-bindgen diff 2025-06-18 2025-11-25`

    `mcp-bindgen diff 2024-11-05..2026-07-28 --format markdown --output changes.md` writes about each step.

    `mcp-bindgen diff 2025-11-25 draft.json --capability tools --fail-on breaking` checks what a draft does to tools.

    `mcp-bindgen diff 2025-11-25 draft.json --accept accepted.toml --format github` annotates a workflow.
    """
    if json_schema:
        from mcp_bindgen.diff.reports.json import json_schema as schema_of_report

        print_json(schema_of_report())
        return
    store = Store()
    facts = merge_semantics(store.semantics, read_semantics(semantics)) if semantics else store.semantics
    selection = Selection(
        role=role.value if role is not None else None,
        methods=frozenset(method or ()),
        capabilities=frozenset(names(capability, "--capability")),
        planes=frozenset(plane or ()),
        least=Severity[min_severity.name],
    )
    acceptances = read_acceptances(accepted) if accepted is not None else ()
    evidence = witness or format in (Format.JSON, Format.HTML)
    pairs = load(revisions or [], store, facts)
    say_corrections(*chain.from_iterable(pairs))
    whole = [compare(old, new, evidence=evidence) for old, new in pairs]
    selection.check(whole)
    report = accept([selection.of(comparison) for comparison in whole], acceptances, date.today(), whole)
    text = render(report, format, _style(output, witness))
    if output is not None:
        save(output, text, "give another --output")
    else:
        sys.stdout.write(text)
    _warn(report)
    if fail_on is not FailOn.NEVER and any(finding.severity >= _LEAST[fail_on] for finding in report.findings):
        raise typer.Exit(1)


def _style(output: Path | None, witness: bool) -> Style:
    width, colour = page() if output is None else (PAGE, False)
    return Style(width, colour=colour, witness=witness)


def _warn(report: Accepted) -> None:
    for acceptance in report.expired:
        typer.echo(
            f"warning: {acceptance.fingerprint} was accepted until {acceptance.expires}: {acceptance.reason}", err=True
        )
    for acceptance in report.unused:
        typer.echo(f"warning: {acceptance.fingerprint} is accepted but not found: {acceptance.reason}", err=True)
