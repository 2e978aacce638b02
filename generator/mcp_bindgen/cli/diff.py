"""`mcp-bindgen diff`: report what changed between revisions, what breaks, for whom, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mcp_bindgen.diff import compare
from mcp_bindgen.diff.accept import Accepted, accept, read_acceptances
from mcp_bindgen.diff.commits import Walk, Walked
from mcp_bindgen.diff.extensions import tell_moves
from mcp_bindgen.diff.finding import Comparison, Finding, Plane, Severity
from mcp_bindgen.diff.reports import Format, Style, render
from mcp_bindgen.diff.select import Selection
from mcp_bindgen.diff.source import load
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.semantics import merge_semantics, read_semantics
from mcp_bindgen.spec.sources import git_place, is_range
from mcp_bindgen.spec.transaction import save

from .options import SOURCES, Folder, Strict, names
from .output import PAGE, page, print_json, say_corrections, say_decisions
from .terminal import StatusLine, say, write_report


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
        typer.Argument(
            metavar="OLD NEW",
            help=f"Revisions, extensions (tasks@draft), schema files ({SOURCES}), one chain (2024-11-05..2026-07-28) "
            "or one range of commits.",
        ),
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
    every_commit: Annotated[
        bool, typer.Option("--every-commit", help="In a range, look into merged branches instead of at their merges.")
    ] = False,
    folder: Folder = None,
    strict: Strict = False,
    json_schema: Annotated[bool, typer.Option("--json-schema", help="Print the JSON Schema of --format json.")] = False,
) -> None:
    """Say what changed between two revisions: what breaks, for whom, and what to do.

    The first lines say whether an old client works with a new server, and a new client with an old server.

    Examples:

    `mcp-bindgen diff 2025-06-18 2025-11-25`

    `mcp-bindgen diff 2024-11-05..2026-07-28 --format markdown --output changes.md` writes about each step.

    `mcp-bindgen diff 2025-11-25 draft.json --capability tools --fail-on breaking` checks what a draft does to tools.

    `mcp-bindgen diff 2026-07-28 https://example.org/schema.json` takes a schema file from anywhere.

    `mcp-bindgen diff tasks@2026-07-28 tasks@draft` compares two versions of an extension.

    `mcp-bindgen diff git:../specification@v1..main:schema/draft/schema.json` says which commit changed what.

    `mcp-bindgen diff 2025-11-25 draft.json --accept accepted.toml --format github` annotates a workflow.
    """
    if json_schema:
        from mcp_bindgen.diff.reports.json import json_schema as schema_of_report

        print_json(schema_of_report())
        return
    store = Store(folder, strict=strict)
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
    wanted = revisions or []
    walked: Walked | None = None
    if len(wanted) == 1 and is_range(wanted[0]):
        whole, walked = _walk(wanted[0], store, facts, evidence, every_commit)
    elif every_commit:
        raise BadInput("--every-commit is for a range of commits", fix="give git:REPO@A..B:PATH, or leave it out")
    else:
        pairs = load(wanted, store, facts)
        whole = [tell_moves(compare(old, new, evidence=evidence), store) for old, new in pairs]
    sides = [side for comparison in whole for side in (comparison.old, comparison.new)]
    say_corrections(*sides)
    say_decisions(*sides)
    selection.check(whole)
    report = accept([selection.of(comparison) for comparison in whole], acceptances, date.today(), whole)
    report = replace(report, walked=walked)
    text = render(report, format, style(output, witness))
    if output is not None:
        save(output, text, "give another --output")
    else:
        write_report(text)
    _warn(report)
    if fails(fail_on, report.findings):
        raise typer.Exit(1)


def fails(fail_on: FailOn, findings: Sequence[Finding]) -> bool:
    """Return whether one of the findings is as severe as the command is to fail on."""
    return fail_on is not FailOn.NEVER and any(finding.severity >= _LEAST[fail_on] for finding in findings)


def _walk(
    name: str, store: Store, facts: Mapping[str, Any], evidence: bool, every_commit: bool
) -> tuple[list[Comparison], Walked]:
    walk = Walk(git_place(name), store, facts, merged=every_commit)
    with StatusLine("comparing commits") as status:
        count = iter(range(1, len(walk.commits) + 1))
        return walk.compare(
            evidence=evidence,
            tell=lambda commit: status.update(f"commit {next(count)} of {len(walk.commits)}, {commit.date}"),
        )


def style(output: Path | None, witness: bool) -> Style:
    """Return how a report is laid out: for the terminal, or for a file."""
    width, colour = page() if output is None else (PAGE, False)
    return Style(width, colour=colour, witness=witness)


def _warn(report: Accepted) -> None:
    for acceptance in report.expired:
        say(f"warning: {acceptance.fingerprint} was accepted until {acceptance.expires}: {acceptance.reason}", err=True)
    for acceptance in report.unused:
        say(f"warning: {acceptance.fingerprint} is accepted but not found: {acceptance.reason}", err=True)
