"""`mcp-bindgen diff` and `history`: report the changes between revisions, and the history of one name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from mcp_bindgen.diff import compare
from mcp_bindgen.diff.accept import accept, read_acceptances
from mcp_bindgen.diff.extensions import tell_moves, timelines
from mcp_bindgen.diff.finding import Comparison, Plane, Severity, Walked
from mcp_bindgen.diff.history import History
from mcp_bindgen.diff.history import history as trace
from mcp_bindgen.diff.select import Selection
from mcp_bindgen.diff.selectors import find
from mcp_bindgen.diff.source import gates, load, timeline
from mcp_bindgen.ir.model import Sender
from mcp_bindgen.report import LOCATED, Format, Report
from mcp_bindgen.report.comparison import Places, without_lines
from mcp_bindgen.report.diff import comparison_report
from mcp_bindgen.report.history import document, record
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.project import ignored_rules
from mcp_bindgen.spec.sources import git_place, is_range

from . import options
from .output import print_json, print_report, save_body, say_diagnostics
from .terminal import StatusLine, say

Level = Literal["info", "risky", "breaking"]

_FAILURES: Mapping[options.FailOn, Severity] = {
    "any": Severity.INFO,
    "risky": Severity.RISKY,
    "breaking": Severity.BREAKING,
}
"""Value of `--fail-on` -> the least severity that fails."""

_LATEST = "latest"
"""Word for the newest released revision."""

_MAX_LINES = 300
"""Number of lines beyond which the text of `diff` counts changes instead of listing them."""


def diff(
    revisions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="OLD NEW",
            help=f"Revisions (latest: the newest release), extensions (tasks@draft), schema files ({options.SOURCES}), "
            "one chain (2024-11-05..2026-07-28 or 2025-11-25..draft.json) or one range of commits.",
        ),
    ] = None,
    format: options.ReportFormat = Format.TEXT,
    out: options.Out = None,
    witness: options.Witness = False,
    role: Annotated[Sender | None, options.option("role")] = None,
    method: Annotated[list[str] | None, options.option("method")] = None,
    only: options.Only = None,
    plane: Annotated[list[Plane] | None, options.option("plane")] = None,
    min_severity: Annotated[Level, options.option("min-severity")] = "info",
    accepted: Annotated[Path | None, options.option("accept")] = None,
    fail_on: options.Failure = "never",
    every_commit: Annotated[bool, options.option("every-commit")] = False,
    is_full: Annotated[bool, options.option("full", lines=_MAX_LINES)] = False,
    body: Annotated[Path | None, options.option("body")] = None,
    json_schema: options.JsonSchema = False,
    *,
    schemas: options.Schemas,
) -> None:
    """Report the changes between two revisions: effects on clients and servers, and fixes.

    The first lines tell whether an old client works with a new server, and a new client with an old server.

    Examples:

    `mcp-bindgen diff 2025-06-18 2025-11-25`

    `mcp-bindgen diff 2024-11-05..2026-07-28 --format markdown --out changes.md` reports each step.

    `mcp-bindgen diff 2025-11-25 draft.json --only tools --fail-on breaking` checks the effect of a draft on tools.

    `mcp-bindgen diff 2026-07-28 https://example.org/schema.json` compares with a schema file from an address.

    `mcp-bindgen diff tasks@2026-07-28 tasks@draft` compares two versions of an extension.

    `mcp-bindgen diff git:../specification@v1..main:schema/draft/schema.json` names the commit of each change.

    `mcp-bindgen diff 2025-11-25 draft.json --accept accepted.toml --format github` annotates the schema file.
    """
    if json_schema:
        if revisions:
            raise BadInput("--json-schema compares nothing", fix="leave the revisions out")
        from mcp_bindgen.report.comparison_json import json_schema as schema_of_report

        print_json(schema_of_report())
        return
    selection = Selection(
        role=role,
        methods=frozenset(method or ()),
        capabilities=frozenset(options.names(only)),
        planes=frozenset(plane or ()),
        least=Severity[min_severity.upper()],
        ignored=frozenset(ignored_rules()),
    )
    acceptances = read_acceptances(accepted) if accepted is not None else ()
    evidence = witness or format in (Format.JSON, Format.HTML)
    given = [schemas.store.newest if name == _LATEST else name for name in revisions or []]
    whole, walked = _comparisons(given, schemas, evidence, every_commit)
    sides = [side for comparison in whole for side in (comparison.old, comparison.new)]
    say_diagnostics(*sides)
    selection.check(whole)
    found = accept([selection.of(comparison) for comparison in whole], acceptances, date.today(), whole)
    found = replace(found, walked=walked)
    places: Places = without_lines
    if format in LOCATED:
        from mcp_bindgen.report.places import SchemaPlaces

        places = SchemaPlaces(found.comparisons, given, schemas.store)
    report = replace(
        comparison_report(found, witness=witness, places=places), max_lines=None if is_full else _MAX_LINES
    )
    print_report(report, format, out)
    if body is not None:
        save_body(report, body)
    for acceptance in found.expired:
        say(f"warning: {acceptance.fingerprint} was accepted until {acceptance.expires}: {acceptance.reason}", err=True)
    for acceptance in found.unused:
        say(f"warning: {acceptance.fingerprint} is accepted but not found: {acceptance.reason}", err=True)
    if options.is_failure(fail_on, (finding.severity for finding in found.findings), _FAILURES):
        raise typer.Exit(1)


def _comparisons(
    names: Sequence[str], schemas: options.Schemas, evidence: bool, every_commit: bool
) -> tuple[list[Comparison], Walked | None]:
    """Return the comparisons that the command line names, and the range of commits, if it is one."""
    store, facts, known = schemas.store, schemas.facts, gates(schemas.store)
    if len(names) != 1 or not is_range(names[0]):
        if every_commit:
            raise BadInput("--every-commit needs a range of commits", fix="give git:REPO@A..B:PATH, or leave it out")
        pairs = load(names, store, facts)
        found = [compare(*pair, evidence=evidence, gates=known) for pair in pairs]
        return [tell_moves(one, store) for one in found], None
    from mcp_bindgen.diff.commits import Walk

    walk = Walk(git_place(names[0]), store, facts, merged=every_commit)
    with StatusLine("comparing commits") as status:
        count = iter(range(1, len(walk.commits) + 1))
        return walk.compare(
            evidence=evidence,
            gates=known,
            tell=lambda commit: status.update(f"commit {next(count)} of {len(walk.commits)}, {commit.date}"),
        )


def history(
    subject: Annotated[
        str, typer.Argument(help="A method, a definition, a member of one, or an error code: Tool.annotations")
    ],
    schema: options.SeveralSchemaFiles = None,
    as_json: options.Json = False,
    *,
    schemas: options.Schemas,
) -> None:
    """Report when a name appeared, changed, was renamed and disappeared.

    Names of extensions are followed through the versions of the extension. Schema files and
    printed models come after all revisions.

    Examples:

    `mcp-bindgen history tools/call`

    `mcp-bindgen history Tool.annotations --json`

    `mcp-bindgen history -32042`

    `mcp-bindgen history tasks/get` reports on core, and on the extension that it moved to.

    `mcp-bindgen history CallToolResult --schema draft.json` includes a schema file.
    """
    protocols = timeline(schemas.store, schema or [], schemas.facts)
    say_diagnostics(*protocols)
    versions = timelines(subject, schemas.store)
    in_core = not versions or any(find(protocol, subject) is not None for protocol in protocols)
    known = gates(schemas.store)
    found: list[tuple[str | None, History]] = [(None, trace(subject, protocols, gates=known))] if in_core else []
    found += [(id, trace(subject, line)) for id, line in versions.items()]
    print_report(Report(partial(document, found), partial(record, found)), Format.JSON if as_json else Format.TEXT)
